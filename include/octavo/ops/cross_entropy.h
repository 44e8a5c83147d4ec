// Cross-entropy whose logits never exist whole: blocks of vocabulary rows merge online into a log-sum-exp per token.
// Letters: T tokens, B vocabulary rows of one block, R states of different rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace octavo::ops {

/// The running state of T tokens over the blocks seen so far. float32 (float64 for float64 logits).
struct VocabularyMerge {
  at::Tensor lse;     // [T], log of the sum of exp(logit); -inf before the first block
  at::Tensor picked;  // [T], the logit of the label; 0 until its block was seen, and for ignored tokens
};

/// State before the first block. On the meta device only shapes.
VocabularyMerge vocabulary_merge_begin(std::int64_t num_tokens, at::ScalarType dtype, at::Device device);

/// Merges logits [T, B] of rows [first_row, first_row + B) into `state`. labels [T] int64 on the CPU, negative =
/// ignored (may be undefined when logits are meta). Local.
void vocabulary_merge_block(VocabularyMerge& state, const at::Tensor& logits, const at::Tensor& labels,
                            std::int64_t first_row);

/// `state` becomes the merge of states [R, 2, T], each log-sum-exp and picked logit; states without any row are -inf
/// and 0, and so is the merge of such alone. The order of the sums is that of R. Local.
void vocabulary_merge_states(VocabularyMerge& state, const at::Tensor& states_R2T);

/// Turns logits [T, B] in place into their gradient: scale * (softmax - onehot) for labelled tokens, 0 for ignored
/// ones.
void logits_to_gradient_(at::Tensor& logits, const at::Tensor& lse, const at::Tensor& labels, std::int64_t first_row,
                         double scale);

/// Sum over labelled tokens of lse - picked, as float64 scalar tensor [] . On meta: a meta scalar.
at::Tensor loss_sum(const VocabularyMerge& state, const at::Tensor& labels);

}  // namespace octavo::ops
