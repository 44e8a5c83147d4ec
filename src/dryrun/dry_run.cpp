#include "octavo/dryrun/dry_run.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "octavo/dataset/random_batches.h"

namespace octavo {

DryRun dry_run(const ModelSpec& model, const DryRunOptions& options, int rank) {
  install_tracking_allocator();
  const at::NoGradGuard no_grad;
  const AccountHandle account = MemoryAccount::create(options.memory_limit);
  const ChargeTo charge(account.get());
  const std::unique_ptr<World> world = make_record_world(rank, options.layout.world_size(), options.backend);
  const ParamTable table(model);
  ParamStore store(table, place(table, options.layout, rank), options.compute, at::kMeta, /*for_training=*/true);
  Trainer trainer(model, options.layout, *world, store, options.trainer);
  const RandomBatches batches({model.vocab_size, options.sequence_length, options.batch, /*seed=*/0});
  DryRun result;
  account->reset_peak();
  account->reset_flops();
  world->ledger().reset();
  trainer.step(batches, 0);
  result.peak = account->peak();
  result.highest = account->highest();
  result.state = account->live();
  result.flops = account->flops();
  result.ledger = world->ledger().rows();
  return result;
}

}  // namespace octavo
