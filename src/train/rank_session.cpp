#include "octavo/train/rank_session.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/agreement.h"
#include "octavo/comm/run_process.h"
#include "octavo/comm/run_ranks.h"

namespace octavo {
void run_session(const SessionOptions& options, const std::function<void(RankSession&)>& body) {
  install_tracking_allocator();
  const auto with_account = [&](World& world) {
    const AccountHandle account = MemoryAccount::create(options.memory_limit);
    const ChargeTo charge(account.get());
    if (options.launch) {
      // All ranks, whatever their layouts say.
      require_agreement(*world.split(DeviceMesh({{Axis::Data, world.size()}}), kAllAxes), options.facts);
    }
    const std::unique_ptr<World> slower = options.link ? make_emulated_world(world, *options.link) : nullptr;
    RankSession session{slower ? *slower : world, *account};
    body(session);
  };
  if (!options.launch) {
    run_ranks({.num_ranks = options.num_ranks,
               .threads_per_rank = options.threads_per_rank,
               .deadline = options.deadline,
               .recorders = options.recorders},
              with_account);
    return;
  }
  if (options.launch->world_size != options.num_ranks) {
    throw UsageError(cat("[train] run_session: ", options.num_ranks, " ranks, but ", options.launch->launcher,
                         " started ", options.launch->world_size, "; they must be equal."));
  }
  run_process({.launch = *options.launch,
               .threads_per_rank = options.threads_per_rank,
               .deadline = options.deadline,
               .check_calls = options.check_collectives,
               .recorders = options.recorders},
              with_account);
}

}  // namespace octavo
