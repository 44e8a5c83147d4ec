#include "octavo/blocks/gated_mlp.h"

#include <ATen/ATen.h>

#include "octavo/ops/functions.h"

namespace octavo {
namespace {

class GatedMlp final : public Block {
 public:
  GatedMlp(BlockLayout layout, double norm_eps) : Block(std::move(layout)), norm_eps_(norm_eps) {}

  at::Tensor prologue(const at::Tensor& x_TH, const WeightRefs& weights) const override {
    return ops::rms_norm(x_TH, weights[mlp_panels::kNorm], norm_eps_);
  }

  Projected project(const at::Tensor& shared_TH, UnitRange, const WeightRefs& weights,
                    BlockContext& context) const override {
    std::vector<at::Tensor> kept = context.stash.kept("gate_up");
    kept.resize(2);
    const auto [gate, up] =
        ops::linear_pair(shared_TH, weights[mlp_panels::kGate], weights[mlp_panels::kUp], kept[0], kept[1]);
    context.stash.offer("gate_up", {gate, up});
    return {ops::swiglu(gate, up)};
  }

  at::Tensor mix(const Projected& projected, UnitRange, const WeightRefs& weights,
                 BlockContext& context) const override {
    return ops::linear_out(projected[0], weights[mlp_panels::kDown], !context.stash.recomputing());
  }

 private:
  double norm_eps_;
};

}  // namespace

std::unique_ptr<Block> make_gated_mlp(BlockLayout layout, double norm_eps) {
  return std::make_unique<GatedMlp>(std::move(layout), norm_eps);
}

}  // namespace octavo
