// Ranks as threads of this process, without libtorch.
#pragma once

#include <chrono>
#include <functional>

#include "comm/threads/thread_rank.h"
#include "octavo/trace/live_recorders.h"

namespace octavo {

struct RankThreadOptions {
  int num_ranks = 1;
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);  // of every wait
  LiveRecorders* recorders = nullptr;                            // lists the ranks while they run
};

/// Runs `body` once per rank, each on a new thread, and returns when all have returned. If ranks throw, their peers'
/// waits end with CommError; then the first error that was not caused by another rank's is thrown here, as it was.
/// A CommError then carries the last collectives of every rank. Throws UsageError if num_ranks < 1.
void run_rank_threads(const RankThreadOptions& options, const std::function<void(ThreadRank&)>& body);

}  // namespace octavo
