// The data axis at work: gradients are summed over ranks bucket by bucket, while backward still runs.
//
// What a rank sends in a step, over R data ranks, for buckets of P elements in all, g bytes per gradient (4; 8 in
// float64), w bytes per weight:
//   ZeRO 0   all_reduce of gradients      2 (R-1)/R P g
//   ZeRO 1   reduce_scatter of gradients    (R-1)/R P g,  all_gather of weights  (R-1)/R P w
#pragma once

#include <vector>

#include "octavo/comm/communicator.h"
#include "octavo/layout/layout.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

class GradientReducer {
 public:
  /// `overlap` = false holds every bucket back until finish(): to see what hiding is worth. All must outlive this.
  GradientReducer(ParamStore& store, Communicator& data, ZeroStage zero, bool overlap = true);

  /// The gradients of block `block` are final on this rank: they travel once their bucket is complete.
  /// Collective: every rank reports its blocks in the same order, also a rank that had no tokens.
  void block_done(int block);
  /// Waits for everything in flight. Afterwards the summed gradients lie in the store: all of them, or under ZeRO 1 the
  /// shards of the buckets (the rest is then stale). Throws InternalError if a block was not reported.
  void finish();

  /// ZeRO 1: brings the weights that other ranks have updated. Collective. Nothing to do for ZeRO 0.
  void gather_weights();

 private:
  void post(int bucket);

  ParamStore& store_;
  Communicator& data_;
  ZeroStage zero_;
  bool overlap_;
  std::vector<int> blocks_left_;  // per bucket
  std::vector<Pending> in_flight_;
};

}  // namespace octavo
