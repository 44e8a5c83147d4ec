#include "octavo/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernels/cross_entropy.h"
#include "ops/rows_of.h"

namespace octavo::ops {
namespace {

void check_logits(const at::Tensor& logits, const at::Tensor& per_token, const char* name, const char* where) {
  check_shape(logits.dim() == 2 && (logits.stride(1) == 1 || logits.numel() == 0 || logits.size(1) == 1), where,
              "logits", logits, "they must be [T, B] with contiguous rows");
  check_shape(per_token.dim() == 1 && per_token.size(0) == logits.size(0) && per_token.is_contiguous() &&
                  per_token.scalar_type() == statistics_dtype(logits.scalar_type()),
              where, name, per_token, cat("it must be [", logits.size(0), "] in the statistics' dtype").c_str());
}

void check_labels(const at::Tensor& labels, std::int64_t num_tokens, const char* where) {
  check_shape(labels.defined() && labels.is_cpu() && labels.dim() == 1 && labels.size(0) == num_tokens &&
                  labels.scalar_type() == at::kLong && labels.is_contiguous(),
              where, "labels", labels, cat("they must be int64 [", num_tokens, "] on the CPU").c_str());
}

}  // namespace

VocabularyMerge vocabulary_merge_begin(std::int64_t num_tokens, at::ScalarType dtype, at::Device device) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::TensorOptions options = at::TensorOptions().dtype(statistics_dtype(dtype)).device(device);
  return {at::full({num_tokens}, -std::numeric_limits<double>::infinity(), options), at::zeros({num_tokens}, options)};
}

void vocabulary_merge_block(VocabularyMerge& state, const at::Tensor& logits, const at::Tensor& labels,
                            std::int64_t first_row) {
  check_logits(logits, state.lse, "lse", "vocabulary_merge_block");
  check_logits(logits, state.picked, "picked", "vocabulary_merge_block");
  if (logits.is_meta() || logits.numel() == 0) return;
  const std::int64_t num_tokens = logits.size(0), num_rows = logits.size(1);
  check_labels(labels, num_tokens, "vocabulary_merge_block");
  const std::int64_t* label = data_of<std::int64_t>(labels);
  with_element_type(logits.scalar_type(), "vocabulary_merge_block", [&](auto element) {
    using T = decltype(element);
    using S = kernels::ComputeType<T>;
    S* lse = mutable_data_of<S>(state.lse);
    S* picked = mutable_data_of<S>(state.picked);
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      const T* row = data_of<T>(logits) + token * logits.stride(0);
      lse[token] = kernels::merged_log_sum_exp<T>(row, num_rows, lse[token]);
      const std::int64_t column = label[token] - first_row;
      if (label[token] >= 0 && column >= 0 && column < num_rows) picked[token] = kernels::load(row[column]);
    }
  });
}

void vocabulary_merge_states(VocabularyMerge& state, const at::Tensor& states) {
  const std::int64_t num_tokens = state.lse.size(0), num_states = states.size(0);
  check_shape(states.dim() == 3 && states.size(1) == 2 && states.size(2) == num_tokens && states.is_contiguous() &&
                  states.scalar_type() == state.lse.scalar_type(),
              "vocabulary_merge_states", "states", states, cat("they must be [R, 2, ", num_tokens, "]").c_str());
  if (states.is_meta()) return;
  with_element_type(states.scalar_type(), "vocabulary_merge_states", [&](auto element) {
    using S = kernels::ComputeType<decltype(element)>;
    const S* values = data_of<S>(states);
    S* lse = mutable_data_of<S>(state.lse);
    S* picked = mutable_data_of<S>(state.picked);
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      S highest = -std::numeric_limits<S>::infinity(), label_logit = 0, sum = 0;
      for (std::int64_t r = 0; r < num_states; ++r) {
        highest = std::max(highest, values[2 * r * num_tokens + token]);
        label_logit += values[(2 * r + 1) * num_tokens + token];
      }
      const bool has_rows = highest > -std::numeric_limits<S>::infinity();
      for (std::int64_t r = 0; has_rows && r < num_states; ++r) {
        sum += std::exp(values[2 * r * num_tokens + token] - highest);
      }
      lse[token] = has_rows ? highest + std::log(sum) : highest;
      picked[token] = label_logit;
    }
  });
}

void logits_to_gradient_(at::Tensor& logits, const at::Tensor& lse, const at::Tensor& labels, std::int64_t first_row,
                         double scale) {
  check_logits(logits, lse, "lse", "logits_to_gradient_");
  if (logits.is_meta() || logits.numel() == 0) return;
  const std::int64_t num_tokens = logits.size(0), num_rows = logits.size(1);
  check_labels(labels, num_tokens, "logits_to_gradient_");
  const std::int64_t* label = data_of<std::int64_t>(labels);
  with_element_type(logits.scalar_type(), "logits_to_gradient_", [&](auto element) {
    using T = decltype(element);
    using S = kernels::ComputeType<T>;
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      T* row = mutable_data_of<T>(logits) + token * logits.stride(0);
      if (label[token] < 0) {
        std::fill_n(row, num_rows, T{});
        continue;
      }
      // The label's own entry is formed before rounding: softmax - 1 would lose its digits in bfloat16.
      const std::int64_t column = label[token] - first_row;
      const bool here = column >= 0 && column < num_rows;
      const S label_logit = here ? kernels::load(row[column]) : S(0);
      const S row_lse = data_of<S>(lse)[token];
      kernels::scaled_softmax<T>(row, num_rows, row_lse, static_cast<S>(scale));
      if (here) kernels::store(row[column], static_cast<S>(scale) * std::expm1(label_logit - row_lse));
    }
  });
}

at::Tensor loss_sum(const VocabularyMerge& state, const at::Tensor& labels) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor total = at::empty({}, state.lse.options().dtype(at::kDouble));
  if (state.lse.is_meta()) return total;
  const std::int64_t num_tokens = state.lse.size(0);
  check_labels(labels, num_tokens, "loss_sum");
  const std::int64_t* label = data_of<std::int64_t>(labels);
  double sum = 0;
  with_element_type(state.lse.scalar_type(), "loss_sum", [&](auto element) {
    using S = kernels::ComputeType<decltype(element)>;
    const S* lse = data_of<S>(state.lse);
    const S* picked = data_of<S>(state.picked);
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      if (label[token] >= 0) sum += static_cast<double>(lse[token]) - static_cast<double>(picked[token]);
    }
  });
  *mutable_data_of<double>(total) = sum;
  return total;
}

}  // namespace octavo::ops
