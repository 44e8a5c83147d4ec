#include "octavo/parallel/tensor/gradient_sums.h"

#include <ATen/ATen.h>

#include <vector>

namespace octavo {
namespace {

void sum_intervals(const at::Tensor& gradients, const GradientSum& sum, Communicator& group) {
  std::vector<at::Tensor> pieces = {at::empty({0}, gradients.options())};
  for (const Interval& interval : sum.local) pieces.push_back(gradients.narrow(0, interval.begin, interval.size()));
  const at::Tensor packed = at::cat(pieces);
  group.all_reduce(packed, Purpose::Gradients).wait();
  std::int64_t offset = 0;
  for (const at::Tensor& piece : pieces) {
    piece.copy_(packed.narrow(0, offset, piece.numel()));
    offset += piece.numel();
  }
}

}  // namespace

void sum_partial_gradients(ParamStore& store, RankGroups& groups) {
  const std::vector<GradientSum>& sums = store.placement().sums;
  for (std::size_t i = 0; i < sums.size(); ++i) sum_intervals(store.gradients(), sums[i], *groups.sums[i]);
}

}  // namespace octavo
