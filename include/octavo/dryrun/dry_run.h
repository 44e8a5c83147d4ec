// One rank's real training step on meta tensors: exact memory by category, FLOPs and its ledger, for any rank of any
// world, without weights, data or peers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "octavo/comm/record/record_world.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/memory/account.h"
#include "octavo/trace/ledger.h"
#include "octavo/train/trainer.h"

namespace octavo {

struct DryRunOptions {
  Layout layout;
  ElementType compute = ElementType::Float32;
  TrainerConfig trainer;
  std::int64_t batch = 1;              // sequences per step over all ranks
  std::int64_t sequence_length = 1;    // tokens
  Bytes memory_limit = 0;              // as in a real run; 0: none
  Backend backend = Backend::Threads;  // that the ranks would talk over
};

struct DryRun {
  MemorySnapshot peak;                              // of a step
  MemorySnapshot state;                             // alive between steps
  std::array<Bytes, kNumMemoryCategories> highest;  // the most that each category held, each at its own moment
  ExecutedFlops flops;                              // of a step
  std::vector<LedgerRow> ledger;
};

/// The step of `rank`. Throws UsageError for a rank outside the layout's world, CheckFailed where the limit is met.
DryRun dry_run(const ModelSpec& model, const DryRunOptions& options, int rank);

}  // namespace octavo
