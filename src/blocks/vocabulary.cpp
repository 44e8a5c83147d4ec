#include "octavo/blocks/vocabulary.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/block_layout.h"
#include "octavo/ops/cross_entropy.h"
#include "octavo/ops/matmul.h"
#include "octavo/ops/rms_norm.h"

namespace octavo {
namespace {

using vocabulary_panels::kNorm;
using vocabulary_panels::kRows;

/// Tokens whose logits exist at once: so many bytes of them, but enough for an efficient product.
std::int64_t tokens_per_chunk(const Head::Options& options, const at::Tensor& weight) {
  return std::max(options.fewest_tokens, options.logit_bytes / (weight.size(0) * weight.element_size()));
}

/// A label beyond the rows would silently lose its share of the gradient.
void check_labels(const at::Tensor& labels, std::int64_t num_rows) {
  const std::int64_t* label = labels.const_data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < labels.size(0); ++t) {
    if (label[t] < num_rows) continue;
    throw UsageError(cat("[blocks] token ", t, " has label ", label[t], "; the vocabulary has rows 0 to ", num_rows - 1,
                         ". Use data made with this model's tokenizer"));
  }
}

/// Rows of zeros that fill the panel up are no part of the vocabulary.
void mask_padding(const at::Tensor& logits, const UnitRange& rows) {
  if (rows.num_padded == 0) return;
  logits.narrow(1, rows.num_real(), rows.num_padded).fill_(-std::numeric_limits<double>::infinity());
}

}  // namespace

at::Tensor embed(const at::Tensor& ids, WeightTrip& trip, UnitExchange& exchange) {
  return exchange.sum(trip.look_up(0, kRows, ids), trip.counts());
}

void embed_backward(const at::Tensor& ids, const at::Tensor& dx, WeightTrip& trip, UnitExchange& exchange) {
  trip.add_rows(0, kRows, ids, exchange.gather(dx));
}

at::Tensor Head::final_norm(const at::Tensor& x, WeightTrip& trip) const {
  return ops::rms_norm_forward(x, trip.common(kNorm), norm_eps_).y;
}

at::Tensor Head::logits(const at::Tensor& normed, WeightTrip& trip, UnitExchange& exchange) const {
  const UnitRange rows = trip.units(0);
  const at::Tensor here = ops::mm(normed, trip.panel(0, kRows).t()).narrow(1, 0, rows.num_real());
  if (rows.num_real() == vocab_size_) return here;
  const at::Tensor all = at::zeros({normed.size(0), vocab_size_}, here.options());
  if (trip.counts()) all.narrow(1, rows.begin, rows.num_real()).copy_(here);
  return exchange.total(all);
}

Head::Result Head::loss(const at::Tensor& x, const at::Tensor& labels, WeightTrip& trip, UnitExchange& exchange) const {
  return run(x, labels, nullptr, trip, exchange);
}

Head::Result Head::loss_and_gradient(const at::Tensor& x, const at::Tensor& labels, double gradient_scale,
                                     WeightTrip& trip, UnitExchange& exchange) const {
  return run(x, labels, &gradient_scale, trip, exchange);
}

Head::Result Head::run(const at::Tensor& x, const at::Tensor& labels, const double* gradient_scale, WeightTrip& trip,
                       UnitExchange& exchange) const {
  const at::Tensor weight = trip.panel(0, kRows), norm_weight = trip.common(kNorm);
  const UnitRange vocabulary = trip.units(0);
  check_labels(labels, vocab_size_);
  const ops::RmsNormResult normed = ops::rms_norm_forward(x, norm_weight, norm_eps_);
  const at::Tensor normed_NH = exchange.gather(normed.y);
  const std::int64_t tokens = normed_NH.size(0), chunk = tokens_per_chunk(options_, weight);
  Result result{at::zeros({}, x.options().dtype(at::kDouble)), {}};
  at::Tensor dnormed_NH;
  if (gradient_scale != nullptr) dnormed_NH = at::empty_like(normed_NH);
  for (std::int64_t first = 0; first < tokens; first += chunk) {
    const std::int64_t count = std::min(chunk, tokens - first);
    const at::Tensor rows = normed_NH.narrow(0, first, count);
    const at::Tensor chunk_labels = labels.narrow(0, first, count);
    at::Tensor logits = ops::mm(rows, weight.t());
    mask_padding(logits, vocabulary);
    ops::VocabularyMerge merge = ops::vocabulary_merge_begin(count, x.scalar_type(), x.device());
    ops::vocabulary_merge_block(merge, logits, chunk_labels, vocabulary.begin);
    exchange.merge(merge, trip.counts());
    result.loss_sum.add_(ops::loss_sum(merge, chunk_labels));
    if (gradient_scale == nullptr) continue;
    ops::logits_to_gradient_(logits, merge.lse, chunk_labels, vocabulary.begin, *gradient_scale);
    trip.add_product(0, kRows, logits, rows);
    at::Tensor target = dnormed_NH.narrow(0, first, count);
    ops::mm_out(target, logits, weight);
  }
  if (gradient_scale == nullptr) return result;
  const at::Tensor dnormed_TH = exchange.sum(std::move(dnormed_NH), trip.counts());
  ops::RmsNormGradient gradient = ops::rms_norm_backward(dnormed_TH, x, norm_weight, normed.rstd);
  trip.add_common(kNorm, gradient.dw);
  result.dx_TH = gradient.dx;
  return result;
}

}  // namespace octavo
