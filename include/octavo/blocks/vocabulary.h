// The two blocks at the ends: ids to rows, and rows and labels to a loss. Their unit is a vocabulary row.
// Letters: T tokens, H hidden size, V rows.
#pragma once

#include <ATen/core/Tensor.h>

#include "octavo/ops/weight_ref.h"

namespace octavo {

/// x [T, H] = the rows of ids [T] (int64, CPU). Local.
at::Tensor embed(const at::Tensor& ids_T, WeightTrip& trip);
/// Sends the gradient of the rows, from dx [T, H], on its way.
void embed_backward(const at::Tensor& ids_T, const at::Tensor& dx_TH, WeightTrip& trip);

/// Final norm, output matrix, and cross-entropy without whole logits: chunks of tokens are taken through all rows, and
/// a chunk's gradient is made while its logits are at hand.
class Head {
 public:
  struct Options {
    std::int64_t logit_bytes = 64 << 20;  // logits that exist at once
    std::int64_t fewest_tokens = 256;     // but never fewer tokens than this at once
  };
  explicit Head(double norm_eps) : Head(norm_eps, Options()) {}
  Head(double norm_eps, const Options& options) : norm_eps_(norm_eps), options_(options) {}

  struct Result {
    at::Tensor loss_sum;  // [] float64: sum over labelled tokens of -log p(label)
    at::Tensor dx_TH;     // gradient of gradient_scale * loss_sum; undefined unless asked for
  };

  /// x [T, H] is the residual stream, labels [T] int64 on the CPU, negative = ignored. `trip` must have all rows in one
  /// step. Throws UsageError naming the first label beyond the rows.
  Result loss(const at::Tensor& x_TH, const at::Tensor& labels_T, WeightTrip& trip) const;
  Result loss_and_gradient(const at::Tensor& x_TH, const at::Tensor& labels_T, double gradient_scale,
                           WeightTrip& trip) const;

  /// The final norm of x [T, H], and its logits [T, V]: for generation and proofs, where T is small.
  at::Tensor final_norm(const at::Tensor& x_TH, WeightTrip& trip) const;
  at::Tensor logits(const at::Tensor& normed_TH, WeightTrip& trip) const;

 private:
  Result run(const at::Tensor& x_TH, const at::Tensor& labels_T, const double* gradient_scale, WeightTrip& trip) const;

  double norm_eps_;
  Options options_;
};

}  // namespace octavo
