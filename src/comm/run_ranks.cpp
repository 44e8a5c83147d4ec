#include "octavo/comm/run_ranks.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "comm/threads/rank_threads.h"
#include "comm/threads_world.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

void run_ranks(const RankOptions& options, const std::function<void(World&)>& body) {
  if (options.threads_per_rank < 1) {
    throw UsageError(cat("[comm] run_ranks: threads_per_rank=", options.threads_per_rank, "; needs at least 1."));
  }
  run_rank_threads({.num_ranks = options.num_ranks, .deadline = options.deadline}, [&](ThreadRank& rank) {
    // All three are settings of the thread. The thread count must come before the first operation: a product of
    // matrices as a thread's first work would use every core otherwise.
    at::set_num_threads(options.threads_per_rank);
    c10::GradMode::set_enabled(false);
    at::globalContext().setFlushDenormal(true);
    ThreadsWorld world(rank);
    body(world);
  });
}

}  // namespace octavo
