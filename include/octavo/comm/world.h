// Where a rank stands: its number, and the groups that it can form. What backends implement.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "octavo/comm/communicator.h"
#include "octavo/mesh/device_mesh.h"
#include "octavo/trace/ledger.h"

namespace octavo {

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string backend() const = 0;  // "threads", "record"

  /// The communicator of this rank's group along `axes` (the ranks that differ only there). Collective over the world:
  /// every rank calls it for the same axes in the same order. Axes of size 1 give a group of one.
  /// The world must outlive it. Throws UsageError if mesh.world_size() != size().
  virtual std::unique_ptr<Communicator> split(const DeviceMesh& mesh, std::span<const Axis> axes) = 0;

  /// What this rank has moved so far, booked by every communicator of this world.
  virtual Ledger& ledger() = 0;
};

}  // namespace octavo
