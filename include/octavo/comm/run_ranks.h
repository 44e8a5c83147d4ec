// Ranks as threads of this process: the embedded default backend, "threads". CPU tensors only.
#pragma once

#include <chrono>
#include <functional>

#include "octavo/comm/world.h"
#include "octavo/trace/live_recorders.h"

namespace octavo {

struct RankOptions {
  int num_ranks = 1;
  int threads_per_rank = 1;                                       // of libtorch's operations
  std::chrono::milliseconds deadline = std::chrono::seconds(60);  // of every wait for a peer
  LiveRecorders* recorders = nullptr;                             // lists the ranks' recorders while they run
};

/// Runs `body` once per rank, each on a new thread with gradients off, denormals flushed and `threads_per_rank` threads
/// for libtorch, and returns when all have returned. Communicators and Pendings must not outlive the body.
///
/// If a rank throws, every wait of its peers ends at once with a CommError that names it and says why; when all have
/// returned, the first error that was not caused by another rank's is thrown here with its type. A rank must not return
/// while its peers still need it: they get a CommError that names it. Ranks that call different operations get a
/// UsageError each. A CommError carries the last collectives of every rank as its report(). An operation that is in
/// flight while an exception unwinds its rank fails its group. Throws UsageError if num_ranks or threads_per_rank is
/// below 1.
void run_ranks(const RankOptions& options, const std::function<void(World&)>& body);

}  // namespace octavo
