#include "octavo/train/rank_session.h"

#include "octavo/comm/run_ranks.h"

namespace octavo {
void run_session(const SessionOptions& options, const std::function<void(RankSession&)>& body) {
  install_tracking_allocator();
  const RankOptions ranks{
      .num_ranks = options.num_ranks, .threads_per_rank = options.threads_per_rank, .deadline = options.deadline};
  run_ranks(ranks, [&](World& world) {
    const AccountHandle account = MemoryAccount::create(options.memory_limit);
    const ChargeTo charge(account.get());
    RankSession session{world, *account};
    body(session);
  });
}

}  // namespace octavo
