// The two blocks at the ends: ids to rows, and rows and labels to a loss. Their unit is a vocabulary row.
// Letters: N tokens of the micro-batch, T those held here between blocks, H hidden size, V rows of the vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/ops/weight_ref.h"

namespace octavo {

/// x [T, H] = the rows of ids [N] (int64, CPU), wherever they are. Collective over the ranks of exchange and trip. Here
/// and below, trips are finished by whoever made them.
at::Tensor embed(const at::Tensor& ids_N, WeightTrip& trip, UnitExchange& exchange);
/// Sends the gradient of the rows, from dx [T, H], on its way. Collective likewise.
void embed_backward(const at::Tensor& ids_N, const at::Tensor& dx_TH, WeightTrip& trip, UnitExchange& exchange);

/// Final norm, output matrix, and cross-entropy without whole logits: chunks of tokens are taken through all rows, and
/// a chunk's gradient is made while its logits are at hand.
class Head {
 public:
  struct Options {
    std::int64_t logit_bytes = 64 << 20;  // logits that exist at once
    std::int64_t fewest_tokens = 256;     // but never fewer tokens than this at once
  };
  Head(std::int64_t vocab_size, double norm_eps) : Head(vocab_size, norm_eps, Options()) {}
  Head(std::int64_t vocab_size, double norm_eps, const Options& options)
      : vocab_size_(vocab_size), norm_eps_(norm_eps), options_(options) {}

  struct Result {
    at::Tensor loss_sum;  // [] float64: sum over the N tokens that have a label of -log p(label)
    at::Tensor dx_TH;     // gradient of gradient_scale * loss_sum; undefined unless asked for
  };

  /// The trips that loss_and_gradient() takes over rows in so many steps. With all rows in one, a chunk's gradient is
  /// made while its logits are at hand; with several, a first trip finds the log-sum-exp of every token and a second
  /// makes the logits again.
  static std::vector<Direction> directions(int num_steps) {
    return num_steps == 1 ? std::vector{Direction::Backward} : std::vector{Direction::Forward, Direction::Backward};
  }
  /// x [T, H] is the residual stream, labels [N] int64 on the CPU, negative = ignored; `trips` as directions() says.
  /// Collective over the ranks of exchange and trips. Throws UsageError naming the first label beyond the vocabulary.
  Result loss_and_gradient(const at::Tensor& x_TH, const at::Tensor& labels_N, double gradient_scale,
                           std::span<WeightTrip* const> trips, UnitExchange& exchange) const;
  /// The loss alone, in a forward trip.
  Result loss(const at::Tensor& x_TH, const at::Tensor& labels_N, WeightTrip& trip, UnitExchange& exchange) const;

  /// The final norm of x [T, H]. Local.
  at::Tensor final_norm(const at::Tensor& x_TH, WeightTrip& trip) const;
  /// Logits [M, V] of normed rows [M, H], the same on every rank: for generation and proofs, where M is small.
  /// Collective over the exchange's ranks.
  at::Tensor logits(const at::Tensor& normed_MH, WeightTrip& trip, UnitExchange& exchange) const;

 private:
  /// Log-sum-exp and picked logit of every token, and on request dlogits times the rows: see vocabulary.cpp.
  void run_one_step(const at::Tensor& normed_NH, const at::Tensor& labels_N, const double* gradient_scale,
                    WeightTrip& trip, UnitExchange& exchange, const at::Tensor& loss_sum,
                    const at::Tensor& dnormed_NH) const;
  ops::VocabularyMerge merge_steps(const at::Tensor& normed_NH, const at::Tensor& labels_N, WeightTrip& trip,
                                   UnitExchange& exchange) const;
  void gradient_steps(const at::Tensor& normed_NH, const at::Tensor& labels_N, const ops::VocabularyMerge& merge,
                      double gradient_scale, WeightTrip& trip, const at::Tensor& dnormed_NH) const;

  std::int64_t vocab_size_;
  double norm_eps_;
  Options options_;
};

}  // namespace octavo
