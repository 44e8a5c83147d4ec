// Ranks as threads of this process, without libtorch.
#pragma once

#include <chrono>
#include <functional>

#include "comm/threads/thread_rank.h"

namespace octavo {

struct RankThreadOptions {
  int num_ranks = 1;
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);  // of every wait
};

/// Runs `body` once per rank, each on a new thread, and returns when all have returned. If ranks throw, their peers'
/// waits end with CommError; then the first error that was not caused by another rank's is thrown here, as it was.
/// Throws UsageError if num_ranks < 1.
void run_rank_threads(const RankThreadOptions& options, const std::function<void(ThreadRank&)>& body);

}  // namespace octavo
