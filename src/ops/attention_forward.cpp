#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "octavo/ops/attention.h"
#include "ops/attention_checks.h"
#include "ops/attention_plan.h"
#include "ops/attention_types.h"
#include "ops/block_product.h"
#include "ops/kernels/attention.h"

// Per KV head and stripe of keys: pack K and V once, then for every block of queries run the online softmax over the
// keys that it sees and merge the result into out and lse by log-sum-exp (a later stripe finds an earlier one's there).
namespace octavo::ops {
namespace {

constexpr int kForwardProducts = 2;  // scores, and weights by values

/// Letters as in kernels/attention.h; Z: keys of a stripe, padded.
struct ForwardScratch {
  at::Tensor keys_ZD, values_DZ;     // left operands
  at::Tensor queries_DN;             // right operand
  at::Tensor scores_KN, weights_KN;  // one tensor unless operands are bfloat16
  at::Tensor out_DN;

  ForwardScratch(const at::Tensor& q, std::int64_t num_keys) {
    const std::int64_t width = q.size(2), stripe = padded(std::min(num_keys, kKeyStripe)) + kPadding;
    const at::TensorOptions operand = q.options().dtype(operand_dtype(q)),
                            wide = q.options().dtype(statistics_dtype(q.scalar_type()));
    keys_ZD = at::empty({stripe, width}, operand);
    values_DZ = at::empty({width, stripe}, operand);
    queries_DN = at::empty({width, kQueryBlock}, operand);
    scores_KN = at::empty({kKeyBlock, kQueryBlock}, wide);
    weights_KN = operand.dtype() == wide.dtype() ? scores_KN : at::empty({kKeyBlock, kQueryBlock}, operand);
    out_DN = at::empty({width, kQueryBlock}, wide);
  }
};

template <class T, class E>
class ForwardPass {
  using S = kernels::ComputeType<T>;

 public:
  ForwardPass(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionResult& result,
              const ForwardScratch& scratch, double scale)
      : q_(q),
        k_(k),
        v_(v),
        result_(result),
        scratch_(scratch),
        scale_(static_cast<S>(scale * std::numbers::log2e)),
        width_(q.size(2)) {}

  void run(std::span<const QueryBlock> blocks) {
    std::fill_n(mutable_data_of<S>(result_.lse), result_.lse.numel(), -std::numeric_limits<S>::infinity());
    const std::int64_t group = q_.size(1) / k_.size(1);
    for (std::int64_t kv_head = 0; kv_head < k_.size(1); ++kv_head) {
      for (stripe_begin_ = 0; stripe_begin_ < k_.size(0); stripe_begin_ += kKeyStripe) {
        stripe_end_ = std::min(stripe_begin_ + kKeyStripe, k_.size(0));
        pack_stripe(kv_head);
        for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          for (const QueryBlock& block : blocks) run_block(block, head);
        }
      }
    }
    end_products();
    clear_unseen();
  }

 private:
  void pack_stripe(std::int64_t kv_head) {
    // Blocks start anywhere and are padded, so the last one may reach beyond the last key.
    stripe_padded_ = padded(stripe_end_ - stripe_begin_) + kPadding;
    kernels::pack_left<T, E>(rows_of_head<T>(k_, kv_head, stripe_begin_, stripe_end_), width_, stripe_padded_,
                             mutable_data_of<E>(scratch_.keys_ZD));
    kernels::pack_left_transposed<T, E>(rows_of_head<T>(v_, kv_head, stripe_begin_, stripe_end_), width_,
                                        stripe_padded_, mutable_data_of<E>(scratch_.values_DZ));
  }

  void run_block(const QueryBlock& block, std::int64_t head) {
    num_queries_ = padded(block.rows);
    std::fill_n(highest_, num_queries_, -std::numeric_limits<S>::infinity());
    std::fill_n(sum_, num_queries_, S(0));
    bool first = true;
    for (const KeySegment& whole : block.segments) {
      const KeySegment segment = within(whole, stripe_begin_, stripe_end_);
      for (std::int64_t key = segment.begin; key < segment.end; key += kKeyBlock) {
        if (first) {
          kernels::pack_right_transposed<T, E>(rows_of_head<T>(q_, head, block.begin, block.begin + block.rows), width_,
                                               num_queries_, mutable_data_of<E>(scratch_.queries_DN));
        }
        add_keys(segment, key, first);
        first = false;
      }
    }
    if (!first) merge(block, head);
  }

  void add_keys(const KeySegment& segment, std::int64_t key, bool first) {
    const std::int64_t num_keys = padded(std::min(kKeyBlock, segment.end - key));
    S* scores = mutable_data_of<S>(scratch_.scores_KN);
    E* weights = mutable_data_of<E>(scratch_.weights_KN);
    S* out = mutable_data_of<S>(scratch_.out_DN);
    block_product({.m = num_keys, .n = num_queries_, .k = width_, .a_stride = width_},
                  data_of<E>(scratch_.keys_ZD) + (key - stripe_begin_) * width_, data_of<E>(scratch_.queries_DN),
                  scores,
                  /*add=*/false);
    if (key + num_keys > std::min(segment.end, segment.diagonal)) {
      kernels::mask_scores<S>(scores, num_keys, num_queries_, key, segment.end, segment.diagonal);
    }
    kernels::softmax_step<S, E>(scores, num_keys, num_queries_, scale_, highest_, sum_, correction_, weights);
    if (!first) kernels::correct_columns<S>(out, width_, num_queries_, correction_);
    block_product({.m = width_, .n = num_queries_, .k = num_keys, .a_stride = stripe_padded_},
                  data_of<E>(scratch_.values_DZ) + (key - stripe_begin_), weights, out, /*add=*/!first);
  }

  void merge(const QueryBlock& block, std::int64_t head) {
    S* lse = mutable_data_of<S>(result_.lse) + head * q_.size(0) + block.begin;
    S new_part[kQueryBlock], old_part[kQueryBlock];
    for (std::int64_t row = 0; row < block.rows; ++row) {
      if (sum_[row] == S(0)) {  // nothing visible in this stripe
        new_part[row] = 0;
        old_part[row] = 1;
        continue;
      }
      const S here = (highest_[row] + std::log2(sum_[row])) * std::numbers::ln2_v<S>;
      const S before = lse[row];
      const S above = std::max(here, before);
      const S merged = above + std::log(std::exp(here - above) + std::exp(before - above));
      new_part[row] = std::exp(here - merged) / sum_[row];
      old_part[row] = std::exp(before - merged);
      lse[row] = merged;
    }
    kernels::merge_columns<S, T>(data_of<S>(scratch_.out_DN), num_queries_, block.rows, width_, new_part, old_part,
                                 mutable_data_of<T>(result_.out) + block.begin * result_.out.stride(0) + head * width_,
                                 result_.out.stride(0));
  }

  void clear_unseen() {
    const std::int64_t num_tokens = q_.size(0);
    for (std::int64_t head = 0; head < q_.size(1); ++head) {
      const S* lse = data_of<S>(result_.lse) + head * num_tokens;
      T* out = mutable_data_of<T>(result_.out) + head * width_;
      for (std::int64_t token = 0; token < num_tokens; ++token) {
        if (lse[token] == -std::numeric_limits<S>::infinity())
          std::fill_n(out + token * result_.out.stride(0), width_, T{});
      }
    }
  }

  const at::Tensor &q_, &k_, &v_;
  const AttentionResult& result_;
  const ForwardScratch& scratch_;
  const S scale_;  // of the scores, in units of log 2
  const std::int64_t width_;
  std::int64_t stripe_begin_ = 0, stripe_end_ = 0, stripe_padded_ = 0, num_queries_ = 0;
  S highest_[kQueryBlock], sum_[kQueryBlock], correction_[kQueryBlock];
};

}  // namespace

AttentionResult attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  std::span<const AttentionPiece> pieces, double scale) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_attention(q, k, v, pieces, scale, "attention_forward");
  const AttentionResult result{at::empty(q.sizes(), q.options().memory_format(at::MemoryFormat::Contiguous)),
                               at::empty({q.size(1), q.size(0)}, q.options().dtype(statistics_dtype(q.scalar_type())))};
  const ForwardScratch scratch(q, k.size(0));
  const std::vector<QueryBlock> blocks = plan_attention(pieces);
  count_attention_flops(count_pairs(pieces, blocks, k.size(0)), kForwardProducts, q.size(1), q.size(2));
  if (q.is_meta()) return result;
  with_attention_types(q, "attention_forward", [&](auto element, auto operand) {
    ForwardPass<decltype(element), decltype(operand)>(q, k, v, result, scratch, scale).run(blocks);
  });
  return result;
}

}  // namespace octavo::ops
