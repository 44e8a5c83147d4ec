#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <numbers>

#include "octavo/ops/attention.h"
#include "ops/attention_checks.h"
#include "ops/attention_plan.h"
#include "ops/attention_types.h"
#include "ops/block_product.h"
#include "ops/kernels/attention.h"

// Per KV head and stripe of keys: pack K and V, sum dK and dV in float over all blocks of queries that see the stripe,
// write them once. dQ of a block is summed in float over the stripe and added to its place.
namespace octavo::ops {
namespace {

constexpr int kBackwardProducts = 5;  // scores again, gradients of weights, values, keys and queries

/// Letters as in kernels/attention.h; Z: keys of a stripe, padded.
struct BackwardScratch {
  at::Tensor keys_ZD, values_ZD, keys_DZ;               // left operands
  at::Tensor queries_DN, dout_DN, queries_ND, dout_ND;  // right operands
  at::Tensor scores_KN, dweights_KN;
  at::Tensor weights_KN, dscores_left_KN, dscores_right_KN;  // the two above unless operands are bfloat16
  at::Tensor dkeys_ZD, dvalues_ZD, dqueries_DN;

  BackwardScratch(const at::Tensor& q, std::int64_t num_keys) {
    const std::int64_t width = q.size(2), stripe = padded(std::min(num_keys, kKeyStripe)) + kPadding;
    const at::TensorOptions operand = q.options().dtype(operand_dtype(q));
    const at::TensorOptions wide = q.options().dtype(statistics_dtype(q.scalar_type()));
    keys_ZD = at::empty({stripe, width}, operand);
    values_ZD = at::empty({stripe, width}, operand);
    keys_DZ = at::empty({width, stripe}, operand);
    for (at::Tensor* place : {&queries_DN, &dout_DN}) *place = at::empty({width, kQueryBlock}, operand);
    for (at::Tensor* place : {&queries_ND, &dout_ND}) *place = at::empty({kQueryBlock, width}, operand);
    for (at::Tensor* place : {&scores_KN, &dweights_KN}) *place = at::empty({kKeyBlock, kQueryBlock}, wide);
    weights_KN = scores_KN;
    dscores_left_KN = dscores_right_KN = dweights_KN;
    if (operand.dtype() != wide.dtype()) {
      for (at::Tensor* place : {&weights_KN, &dscores_left_KN, &dscores_right_KN}) {
        *place = at::empty({kKeyBlock, kQueryBlock}, operand);
      }
    }
    dkeys_ZD = at::empty({stripe, width}, wide);
    dvalues_ZD = at::empty({stripe, width}, wide);
    dqueries_DN = at::empty({width, kQueryBlock}, wide);
  }
};

struct BackwardInput {
  const at::Tensor &dout, &q, &k, &v;
  const AttentionResult& forward;
  double scale;
};

template <class T, class E>
class BackwardPass {
  using S = kernels::ComputeType<T>;

 public:
  BackwardPass(const BackwardInput& input, const AttentionGradient& gradient, const BackwardScratch& scratch)
      : in_(input),
        gradient_(gradient),
        scratch_(scratch),
        scale_(static_cast<S>(input.scale)),
        width_(input.q.size(2)) {}

  void run(std::span<const QueryBlock> blocks) {
    const std::int64_t num_kv_heads = in_.k.size(1), group = in_.q.size(1) / num_kv_heads;
    for (std::int64_t kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
      for (stripe_begin_ = 0; stripe_begin_ < in_.k.size(0); stripe_begin_ += kKeyStripe) {
        stripe_end_ = std::min(stripe_begin_ + kKeyStripe, in_.k.size(0));
        begin_stripe(kv_head);
        for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          for (const QueryBlock& block : blocks) run_block(block, head);
        }
        store_stripe(kv_head, scratch_.dkeys_ZD, scale_, gradient_.dk);
        store_stripe(kv_head, scratch_.dvalues_ZD, S(1), gradient_.dv);
      }
    }
    end_products();
  }

 private:
  void begin_stripe(std::int64_t kv_head) {
    stripe_padded_ = padded(stripe_end_ - stripe_begin_) + kPadding;
    const auto keys = rows_of_head<T>(in_.k, kv_head, stripe_begin_, stripe_end_);
    kernels::pack_left<T, E>(keys, width_, stripe_padded_, mutable_data_of<E>(scratch_.keys_ZD));
    kernels::pack_left_transposed<T, E>(keys, width_, stripe_padded_, mutable_data_of<E>(scratch_.keys_DZ));
    kernels::pack_left<T, E>(rows_of_head<T>(in_.v, kv_head, stripe_begin_, stripe_end_), width_, stripe_padded_,
                             mutable_data_of<E>(scratch_.values_ZD));
    std::fill_n(mutable_data_of<S>(scratch_.dkeys_ZD), stripe_padded_ * width_, S(0));
    std::fill_n(mutable_data_of<S>(scratch_.dvalues_ZD), stripe_padded_ * width_, S(0));
  }

  void run_block(const QueryBlock& block, std::int64_t head) {
    num_queries_ = padded(block.rows);
    bool first = true;
    for (const KeySegment& whole : block.segments) {
      const KeySegment segment = within(whole, stripe_begin_, stripe_end_);
      for (std::int64_t key = segment.begin; key < segment.end; key += kKeyBlock) {
        if (first) begin_block(block, head);
        add_keys(segment, key, first);
        first = false;
      }
    }
    if (first) return;
    S new_part[kQueryBlock], old_part[kQueryBlock];
    std::fill_n(new_part, kQueryBlock, scale_);
    std::fill_n(old_part, kQueryBlock, S(1));
    kernels::merge_columns<S, T>(
        data_of<S>(scratch_.dqueries_DN), num_queries_, block.rows, width_, new_part, old_part,
        mutable_data_of<T>(gradient_.dq) + block.begin * gradient_.dq.stride(0) + head * width_,
        gradient_.dq.stride(0));
  }

  void begin_block(const QueryBlock& block, std::int64_t head) {
    const std::int64_t end = block.begin + block.rows;
    const auto queries = rows_of_head<T>(in_.q, head, block.begin, end);
    const auto dout = rows_of_head<T>(in_.dout, head, block.begin, end);
    kernels::pack_right_transposed<T, E>(queries, width_, num_queries_, mutable_data_of<E>(scratch_.queries_DN));
    kernels::pack_right<T, E>(queries, width_, num_queries_, mutable_data_of<E>(scratch_.queries_ND));
    kernels::pack_right_transposed<T, E>(dout, width_, num_queries_, mutable_data_of<E>(scratch_.dout_DN));
    kernels::pack_right<T, E>(dout, width_, num_queries_, mutable_data_of<E>(scratch_.dout_ND));
    // Padded queries: scores 0 and lse 0 make weights of 1, which meet rows of dout that are zero.
    std::fill_n(lse_, num_queries_, S(0));
    std::fill_n(delta_, num_queries_, S(0));
    const S* lse = data_of<S>(in_.forward.lse) + head * in_.q.size(0) + block.begin;
    for (std::int64_t row = 0; row < block.rows; ++row) lse_[row] = lse[row] * std::numbers::log2e_v<S>;
    kernels::row_products<T>(dout, rows_of_head<T>(in_.forward.out, head, block.begin, end), width_, delta_);
  }

  void add_keys(const KeySegment& segment, std::int64_t key, bool first) {
    const std::int64_t num_keys = padded(std::min(kKeyBlock, segment.end - key));
    const std::int64_t place = key - stripe_begin_;
    const ProductShape to_queries{.m = num_keys, .n = num_queries_, .k = width_, .a_stride = width_};
    S* scores = mutable_data_of<S>(scratch_.scores_KN);
    S* dweights = mutable_data_of<S>(scratch_.dweights_KN);
    block_product(to_queries, data_of<E>(scratch_.keys_ZD) + place * width_, data_of<E>(scratch_.queries_DN), scores,
                  /*add=*/false);
    block_product(to_queries, data_of<E>(scratch_.values_ZD) + place * width_, data_of<E>(scratch_.dout_DN), dweights,
                  /*add=*/false);
    if (key + num_keys > std::min(segment.end, segment.diagonal)) {
      kernels::mask_scores<S>(scores, num_keys, num_queries_, key, segment.end, segment.diagonal);
    }
    E* weights = mutable_data_of<E>(scratch_.weights_KN);
    E* dscores = mutable_data_of<E>(scratch_.dscores_left_KN);
    E* dscores_right = mutable_data_of<E>(scratch_.dscores_right_KN);
    kernels::softmax_gradient<S, E>(scores, dweights, num_keys, num_queries_, scale_ * std::numbers::log2e_v<S>, lse_,
                                    delta_, weights, dscores, dscores_right);

    const ProductShape to_keys{.m = num_keys, .n = width_, .k = num_queries_, .a_stride = num_queries_};
    block_product(to_keys, weights, data_of<E>(scratch_.dout_ND),
                  mutable_data_of<S>(scratch_.dvalues_ZD) + place * width_, /*add=*/true);
    block_product(to_keys, dscores, data_of<E>(scratch_.queries_ND),
                  mutable_data_of<S>(scratch_.dkeys_ZD) + place * width_, /*add=*/true);
    block_product({.m = width_, .n = num_queries_, .k = num_keys, .a_stride = stripe_padded_},
                  data_of<E>(scratch_.keys_DZ) + place, dscores_right, mutable_data_of<S>(scratch_.dqueries_DN),
                  /*add=*/!first);
  }

  void store_stripe(std::int64_t kv_head, const at::Tensor& sums_ZD, S factor, const at::Tensor& target) {
    kernels::store_rows<S, T>(data_of<S>(sums_ZD), stripe_end_ - stripe_begin_, width_, factor,
                              mutable_data_of<T>(target) + stripe_begin_ * target.stride(0) + kv_head * width_,
                              target.stride(0));
  }

  const BackwardInput& in_;
  const AttentionGradient& gradient_;
  const BackwardScratch& scratch_;
  const S scale_;
  const std::int64_t width_;
  std::int64_t stripe_begin_ = 0, stripe_end_ = 0, stripe_padded_ = 0, num_queries_ = 0;
  S lse_[kQueryBlock];  // in units of log 2
  S delta_[kQueryBlock];
};

}  // namespace

AttentionGradient attention_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const AttentionResult& forward,
                                     std::span<const AttentionPiece> pieces, double scale) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_attention(q, k, v, pieces, scale, "attention_backward");
  check_attention_result(dout, q, forward, "attention_backward");
  const at::TensorOptions contiguous = q.options().memory_format(at::MemoryFormat::Contiguous);
  const AttentionGradient gradient{at::zeros(q.sizes(), contiguous), at::empty(k.sizes(), contiguous),
                                   at::empty(v.sizes(), contiguous)};
  const BackwardScratch scratch(q, k.size(0));
  const std::vector<QueryBlock> blocks = plan_attention(pieces);
  count_attention_flops(count_pairs(pieces, blocks, k.size(0)), kBackwardProducts, q.size(1), q.size(2));
  if (q.is_meta()) return gradient;
  const BackwardInput input{dout, q, k, v, forward, scale};
  with_attention_types(q, "attention_backward", [&](auto element, auto operand) {
    BackwardPass<decltype(element), decltype(operand)>(input, gradient, scratch).run(blocks);
  });
  return gradient;
}

}  // namespace octavo::ops
