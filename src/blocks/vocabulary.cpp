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
std::int64_t tokens_per_chunk(const Head::Options& options, const WeightTrip& trip, std::size_t element_bytes) {
  return std::max(options.fewest_tokens,
                  options.logit_bytes / (trip.most_units() * static_cast<std::int64_t>(element_bytes)));
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

/// Calls body(first token, rows) for chunks of tokens.
template <class Body>
void for_each_chunk(const at::Tensor& rows_NH, std::int64_t chunk, const Body& body) {
  const std::int64_t tokens = rows_NH.size(0);
  for (std::int64_t first = 0; first < tokens; first += chunk) {
    body(first, rows_NH.narrow(0, first, std::min(chunk, tokens - first)));
  }
}

/// Rows of zeros that fill the panel up are no part of the vocabulary.
void mask_padding(const at::Tensor& logits, const UnitRange& rows) {
  if (rows.num_padded == 0) return;
  logits.narrow(1, rows.num_real(), rows.num_padded).fill_(-std::numeric_limits<double>::infinity());
}

}  // namespace

at::Tensor embed(const at::Tensor& ids, WeightTrip& trip, UnitExchange& exchange) {
  at::Tensor x;
  for (int place = 0; place < trip.num_steps(); ++place) {
    const int step = trip.step_at(place);
    const at::Tensor rows = trip.look_up(step, kRows, ids);
    x = place == 0 ? rows : x.add_(rows);
    trip.step_done(step);
  }
  return exchange.sum(std::move(x), trip.counts());
}

void embed_backward(const at::Tensor& ids, const at::Tensor& dx, WeightTrip& trip, UnitExchange& exchange) {
  const at::Tensor dx_NH = exchange.gather(dx);
  for (int place = 0; place < trip.num_steps(); ++place) {
    const int step = trip.step_at(place);
    trip.add_rows(step, kRows, ids, dx_NH);
    trip.step_done(step);
  }
}

at::Tensor Head::final_norm(const at::Tensor& x, WeightTrip& trip) const {
  return ops::rms_norm_forward(x, trip.common(kNorm), norm_eps_).y;
}

at::Tensor Head::logits(const at::Tensor& normed, WeightTrip& trip, UnitExchange& exchange) const {
  if (trip.num_steps() == 1 && trip.units(0).num_real() == vocab_size_) {
    return ops::mm(normed, trip.panel(0, kRows).t()).narrow(1, 0, vocab_size_);
  }
  const at::Tensor all = at::zeros({normed.size(0), vocab_size_}, normed.options());
  for (int place = 0; place < trip.num_steps(); ++place) {
    const int step = trip.step_at(place);
    const UnitRange rows = trip.units(step);
    const at::Tensor here = ops::mm(normed, trip.panel(step, kRows).t()).narrow(1, 0, rows.num_real());
    if (trip.counts()) all.narrow(1, rows.begin, rows.num_real()).copy_(here);
    trip.step_done(step);
  }
  return exchange.total(all);
}

Head::Result Head::loss(const at::Tensor& x, const at::Tensor& labels, WeightTrip& trip, UnitExchange& exchange) const {
  check_labels(labels, vocab_size_);
  const at::Tensor normed_NH = exchange.gather(final_norm(x, trip));
  Result result{at::zeros({}, x.options().dtype(at::kDouble)), {}};
  if (trip.num_steps() == 1) {
    run_one_step(normed_NH, labels, nullptr, trip, exchange, result.loss_sum, {});
    trip.step_done(0);
  } else {
    result.loss_sum.add_(ops::loss_sum(merge_steps(normed_NH, labels, trip, exchange), labels));
  }
  return result;
}

Head::Result Head::loss_and_gradient(const at::Tensor& x, const at::Tensor& labels, double gradient_scale,
                                     std::span<WeightTrip* const> trips, UnitExchange& exchange) const {
  check_labels(labels, vocab_size_);
  WeightTrip& trip = *trips.back();
  const at::Tensor norm_weight = trip.common(kNorm);
  const ops::RmsNormResult normed = ops::rms_norm_forward(x, norm_weight, norm_eps_);
  const at::Tensor normed_NH = exchange.gather(normed.y);
  Result result{at::zeros({}, x.options().dtype(at::kDouble)), {}};
  at::Tensor dnormed_NH = at::empty_like(normed_NH);
  if (trip.num_steps() == 1) {
    run_one_step(normed_NH, labels, &gradient_scale, trip, exchange, result.loss_sum, dnormed_NH);
    trip.step_done(0);
  } else {
    const ops::VocabularyMerge merge = merge_steps(normed_NH, labels, *trips.front(), exchange);
    result.loss_sum.add_(ops::loss_sum(merge, labels));
    gradient_steps(normed_NH, labels, merge, gradient_scale, trip, dnormed_NH);
  }
  const at::Tensor dnormed_TH = exchange.sum(std::move(dnormed_NH), trip.counts());
  ops::RmsNormGradient gradient = ops::rms_norm_backward(dnormed_TH, x, norm_weight, normed.rstd);
  trip.add_common(kNorm, gradient.dw);
  result.dx_TH = gradient.dx;
  return result;
}

void Head::run_one_step(const at::Tensor& normed_NH, const at::Tensor& labels, const double* gradient_scale,
                        WeightTrip& trip, UnitExchange& exchange, const at::Tensor& loss_sum,
                        const at::Tensor& dnormed_NH) const {
  const at::Tensor weight = trip.panel(0, kRows);
  const UnitRange vocabulary = trip.units(0);
  for_each_chunk(normed_NH, tokens_per_chunk(options_, trip, weight.element_size()),
                 [&](std::int64_t first, const at::Tensor& rows) {
                   const std::int64_t count = rows.size(0);
                   const at::Tensor chunk_labels = labels.narrow(0, first, count);
                   at::Tensor logits = ops::mm(rows, weight.t());
                   mask_padding(logits, vocabulary);
                   ops::VocabularyMerge merge = ops::vocabulary_merge_begin(count, rows.scalar_type(), rows.device());
                   ops::vocabulary_merge_block(merge, logits, chunk_labels, vocabulary.begin);
                   exchange.merge(merge, trip.counts());
                   loss_sum.add_(ops::loss_sum(merge, chunk_labels));
                   if (gradient_scale == nullptr) return;
                   ops::logits_to_gradient_(logits, merge.lse, chunk_labels, vocabulary.begin, *gradient_scale);
                   trip.add_product(0, kRows, logits, rows);
                   at::Tensor target = dnormed_NH.narrow(0, first, count);
                   ops::mm_out(target, logits, weight);
                 });
}

ops::VocabularyMerge Head::merge_steps(const at::Tensor& normed_NH, const at::Tensor& labels, WeightTrip& trip,
                                       UnitExchange& exchange) const {
  ops::VocabularyMerge merge =
      ops::vocabulary_merge_begin(normed_NH.size(0), normed_NH.scalar_type(), normed_NH.device());
  for (int place = 0; place < trip.num_steps(); ++place) {
    const int step = trip.step_at(place);
    const at::Tensor weight = trip.panel(step, kRows);
    const UnitRange vocabulary = trip.units(step);
    for_each_chunk(normed_NH, tokens_per_chunk(options_, trip, weight.element_size()),
                   [&](std::int64_t first, const at::Tensor& rows) {
                     const at::Tensor logits = ops::mm(rows, weight.t());
                     mask_padding(logits, vocabulary);
                     ops::VocabularyMerge part{merge.lse.narrow(0, first, rows.size(0)),
                                               merge.picked.narrow(0, first, rows.size(0))};
                     ops::vocabulary_merge_block(part, logits, labels.narrow(0, first, rows.size(0)), vocabulary.begin);
                   });
    trip.step_done(step);
  }
  exchange.merge(merge, trip.counts());
  return merge;
}

void Head::gradient_steps(const at::Tensor& normed_NH, const at::Tensor& labels, const ops::VocabularyMerge& merge,
                          double gradient_scale, WeightTrip& trip, const at::Tensor& dnormed_NH) const {
  for (int place = 0; place < trip.num_steps(); ++place) {
    const int step = trip.step_at(place);
    const at::Tensor weight = trip.panel(step, kRows);
    const UnitRange vocabulary = trip.units(step);
    for_each_chunk(normed_NH, tokens_per_chunk(options_, trip, weight.element_size()),
                   [&](std::int64_t first, const at::Tensor& rows) {
                     const std::int64_t count = rows.size(0);
                     at::Tensor logits = ops::mm(rows, weight.t());
                     mask_padding(logits, vocabulary);
                     ops::logits_to_gradient_(logits, merge.lse.narrow(0, first, count), labels.narrow(0, first, count),
                                              vocabulary.begin, gradient_scale);
                     trip.add_product(step, kRows, logits, rows);
                     at::Tensor target = dnormed_NH.narrow(0, first, count);
                     if (place == 0) {
                       ops::mm_out(target, logits, weight);
                     } else {
                       ops::addmm_(target, logits, weight);
                     }
                   });
    trip.step_done(step);
  }
}

}  // namespace octavo
