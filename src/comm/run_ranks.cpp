#include "octavo/comm/run_ranks.h"

#include "comm/rank_thread_settings.h"
#include "comm/threads/rank_threads.h"
#include "comm/threads_world.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

void run_ranks(const RankOptions& options, const std::function<void(World&)>& body) {
  if (options.threads_per_rank < 1) {
    throw UsageError(cat("[comm] run_ranks: threads_per_rank=", options.threads_per_rank, "; needs at least 1."));
  }
  const RankThreadOptions threads{
      .num_ranks = options.num_ranks, .deadline = options.deadline, .recorders = options.recorders};
  run_rank_threads(threads, [&](ThreadRank& rank) {
    set_up_rank_thread(options.threads_per_rank);
    ThreadsWorld world(rank);
    body(world);
  });
}

}  // namespace octavo
