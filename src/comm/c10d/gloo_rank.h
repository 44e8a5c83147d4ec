// What all groups of one process share: the rank's place in the job, its books, and the ways to reach the other ranks.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/c10d/key_store.h"
#include "comm/c10d/note_board.h"
#include "comm/c10d/peer_links.h"
#include "comm/c10d/world_clock.h"
#include "octavo/comm/run_process.h"
#include "octavo/mesh/rank_group.h"
#include "octavo/trace/ledger.h"

namespace octavo {

class GlooGroup;

/// Belongs to the rank's thread. Owns its groups: their connections stay open until all ranks have returned, for a peer
/// may still read what was sent last.
class GlooRank {
 public:
  /// Collective over the job. Throws UsageError or CommError if it does not come together.
  explicit GlooRank(const ProcessOptions& options);
  ~GlooRank();
  GlooRank(const GlooRank&) = delete;
  GlooRank& operator=(const GlooRank&) = delete;

  int rank() const { return launch_.rank; }
  int size() const { return launch_.world_size; }
  bool check_calls() const { return check_calls_; }
  std::chrono::milliseconds deadline() const { return deadline_; }
  const LinkDevice& device() const { return device_; }
  KeyStore& meeting() { return meeting_; }
  NoteBoard& board() { return board_; }
  const WorldClock& clock() const { return clock_; }
  Ledger& ledger() { return ledger_; }
  FlightRecorder& recorder() { return recorder_; }

  /// As World::split(). The group lives as long as this.
  GlooGroup& split(const RankGroup& group);
  /// As World::exchange_times().
  void exchange_times();

  /// The body has returned: waits until all have, or for the deadline.
  void leave();
  /// The body has thrown: tells the peers and ends their waits.
  void fail(const Failure& failure);

 private:
  void check_in();

  const Launch launch_;
  const std::chrono::milliseconds deadline_;
  const bool check_calls_;
  const HostedStore hosted_;
  KeyStore store_;    // for notes
  KeyStore meeting_;  // for groups that come together, which may take long
  NoteBoard board_;
  LinkDevice device_;
  WorldClock clock_;
  Ledger ledger_;
  FlightRecorder recorder_;
  int num_splits_ = 0;
  std::vector<std::unique_ptr<GlooGroup>> groups_;  // in the order of the splits
};

}  // namespace octavo
