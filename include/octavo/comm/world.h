// Where a rank stands: its number, and the groups that it can form. What backends implement.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "octavo/comm/communicator.h"
#include "octavo/mesh/rank_group.h"
#include "octavo/trace/flight_recorder.h"
#include "octavo/trace/ledger.h"

namespace octavo {

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string backend() const = 0;  // "threads", "gloo", "record"
  /// Whether ranks read each other's memory where it lies, so that what is only read need not move.
  virtual bool reads_in_place() const = 0;

  /// The communicator of a group of ranks that this rank is in. Collective over the world: every rank calls it with its
  /// own group of the same cut, in the same order of cuts. The world must outlive it. Throws UsageError if ranks cut
  /// differently.
  virtual std::unique_ptr<Communicator> split(const RankGroup& group) = 0;

  /// The communicator of this rank's group along `axes` (the ranks that differ only there). Axes of size 1 give a group
  /// of one. Throws UsageError if mesh.world_size() != size().
  std::unique_ptr<Communicator> split(const DeviceMesh& mesh, std::span<const Axis> axes);

  /// What this rank has moved so far, booked by every communicator of this world.
  virtual Ledger& ledger() = 0;

  /// Tells the ledger the skew of all transfers since the last call, where a wait cannot know it (gloo). Collective
  /// over the world: after a step, at one place of the program, before the ledger is read or reset.
  virtual void exchange_times() {}

  /// The rank's last collectives; lives as long as the world.
  virtual FlightRecorder& recorder() = 0;
  /// Collectives from now on belong to this step; errors name it.
  void set_step(std::int64_t step) { recorder().set_step(step); }
};

}  // namespace octavo
