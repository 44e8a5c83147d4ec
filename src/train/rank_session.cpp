#include "octavo/train/rank_session.h"

#include "octavo/comm/threads/run_ranks.h"

namespace octavo {
namespace {

struct AccountOwner {
  explicit AccountOwner(Bytes limit) : account(MemoryAccount::create(limit)) {}
  ~AccountOwner() { account->release(); }
  AccountOwner(const AccountOwner&) = delete;
  AccountOwner& operator=(const AccountOwner&) = delete;
  MemoryAccount* account;
};

}  // namespace

void run_session(const SessionOptions& options, const std::function<void(RankSession&)>& body) {
  install_tracking_allocator();
  const RankOptions ranks{
      .num_ranks = options.num_ranks, .threads_per_rank = options.threads_per_rank, .deadline = options.deadline};
  run_ranks(ranks, [&](World& world) {
    const AccountOwner owner(options.memory_limit);
    const ChargeTo charge(owner.account);
    RankSession session{world, *owner.account};
    body(session);
  });
}

}  // namespace octavo
