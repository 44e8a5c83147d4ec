#include "octavo/blocks/attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "octavo/ops/functions.h"

namespace octavo {
namespace {

class Attention final : public Block {
 public:
  Attention(BlockLayout layout, const AttentionSpec& spec, double norm_eps)
      : Block(std::move(layout)), spec_(spec), norm_eps_(norm_eps) {}

  at::Tensor prologue(const at::Tensor& x_TH, const WeightRefs& weights) const override {
    return ops::rms_norm(x_TH, weights[attention_panels::kNorm], norm_eps_);
  }

  Projected project(const at::Tensor& shared_TH, UnitRange units, const WeightRefs& weights,
                    BlockContext& context) const override {
    const std::vector<at::Tensor> kept = context.stash.kept("qkv");
    const at::Tensor qkv =
        ops::linear(shared_TH, weights[attention_panels::kQkv], kept.empty() ? at::Tensor() : kept.front());
    context.stash.offer("qkv", {qkv});
    std::optional<ops::QkNorm> norm;
    if (spec_.qk_norm) {
      norm = ops::QkNorm{weights[attention_panels::kQNorm], weights[attention_panels::kKNorm], norm_eps_};
    }
    auto [q, k, v] =
        ops::split_heads(qkv, units.size(), spec_.head_dim, context.sequence.rope(spec_.rope, spec_.head_dim), norm);
    return {q, k, v};
  }

  at::Tensor mix(const Projected& projected, UnitRange, const WeightRefs& weights,
                 BlockContext& context) const override {
    const double scale = 1.0 / std::sqrt(static_cast<double>(spec_.head_dim));
    const at::Tensor out = ops::attention(projected[projected_attention::kQuery], projected[projected_attention::kKey],
                                          projected[projected_attention::kValue], context.keys_values,
                                          context.sequence.pieces(), scale, context.stash);
    return ops::linear_out(out.flatten(1, 2), weights[attention_panels::kOut], !context.stash.recomputing());
  }

  bool exchanges_keys_values() const override { return true; }

 private:
  AttentionSpec spec_;
  double norm_eps_;
};

}  // namespace

std::unique_ptr<Block> make_attention(BlockLayout layout, const AttentionSpec& spec, double norm_eps) {
  return std::make_unique<Attention>(std::move(layout), spec, norm_eps);
}

}  // namespace octavo
