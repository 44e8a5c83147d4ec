#include "octavo/parallel/data/gradient_reducer.h"

#include <ATen/ATen.h>

#include "octavo/base/error.h"

namespace octavo {
namespace {

at::Tensor span_of(const at::Tensor& flat, const Interval& interval) {
  return flat.narrow(0, interval.begin, interval.size());
}

}  // namespace

GradientReducer::GradientReducer(ParamStore& store, Communicator& data, ZeroStage zero, bool overlap)
    : store_(store), data_(data), zero_(zero), overlap_(overlap) {
  for (const Bucket& bucket : store_.placement().buckets) {
    blocks_left_.push_back(bucket.last_block - bucket.first_block + 1);
  }
}

void GradientReducer::block_done(int block) {
  const auto& buckets = store_.placement().buckets;
  for (int i = static_cast<int>(buckets.size()) - 1; i >= 0; --i) {
    if (block < buckets[i].first_block || block > buckets[i].last_block) continue;
    if (--blocks_left_[i] == 0 && overlap_) post(i);
  }
}

void GradientReducer::post(int bucket) {
  const at::Tensor whole = span_of(store_.gradients(), store_.placement().buckets[bucket].local);
  if (zero_ == ZeroStage::Optimizer) {
    const at::Tensor own = span_of(store_.gradients(), store_.placement().buckets[bucket].shard);
    in_flight_.push_back(data_.reduce_scatter(own, whole, Purpose::Gradients));
  } else {
    in_flight_.push_back(data_.all_reduce(whole, Purpose::Gradients));
  }
}

void GradientReducer::finish() {
  const auto& buckets = store_.placement().buckets;
  for (int i = static_cast<int>(buckets.size()) - 1; i >= 0; --i) {
    internal_check(blocks_left_[i] == 0, "[parallel] gradients were reduced before every block was done");
    if (!overlap_) post(i);
    blocks_left_[i] = buckets[i].last_block - buckets[i].first_block + 1;
  }
  for (Pending& pending : in_flight_) pending.wait();
  in_flight_.clear();
}

void GradientReducer::gather_weights() {
  if (zero_ != ZeroStage::Optimizer) return;
  const Placement& placement = store_.placement();
  for (std::size_t i = 0; i < placement.buckets.size(); ++i) {
    in_flight_.push_back(data_.all_gather(span_of(store_.weights(), placement.buckets[i].local),
                                          span_of(store_.weights(), placement.buckets[i].shard), Purpose::Weights));
  }
  for (Pending& pending : in_flight_) pending.wait();
  in_flight_.clear();
}

}  // namespace octavo
