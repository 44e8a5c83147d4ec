// Ranks with an account of their memory: how a program starts them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "octavo/comm/emulated_world.h"
#include "octavo/comm/launch.h"
#include "octavo/comm/world.h"
#include "octavo/layout/layout.h"
#include "octavo/memory/account.h"
#include "octavo/trace/live_recorders.h"

namespace octavo {

struct RankSession {
  World& world;
  MemoryAccount& memory;  // charged for everything that this rank's thread allocates
};

struct SessionOptions {
  int num_ranks = 1;
  int threads_per_rank = 1;           // of libtorch's operators
  Bytes memory_limit = 0;             // per rank; 0: none
  std::chrono::seconds deadline{60};  // of every wait for another rank
  std::optional<Launch> launch =
      std::nullopt;                    // this process is one rank of these; none: all ranks are threads of this process
  bool check_collectives = false;      // compare the ranks' calls before they run; rank threads always do
  LiveRecorders* recorders = nullptr;  // lists the ranks of this process while they run
  std::optional<LinkSpec> link = std::nullopt;  // what ranks say to each other takes as long as over this link
  std::vector<std::string> facts = {};  // what all ranks must have been started with; processes compare them first

  /// Whether rank 0 runs in this process: the one that reports.
  bool has_rank_0() const { return !launch || launch->rank == 0; }
};

/// Runs `body` on every rank: as threads of this process, or, under a launcher, on this process' own rank. Returns when
/// all have returned. A launcher's ranks meet once: a process runs one session of them. The first error of a rank ends
/// the others and is thrown here (a process throws its own). Throws UsageError for fewer than one rank or thread, if
/// the launcher's world has not num_ranks, or if the ranks' facts differ.
void run_session(const SessionOptions& options, const std::function<void(RankSession&)>& body);

}  // namespace octavo
