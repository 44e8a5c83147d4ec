#include "octavo/dataset/batches.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/random.h"
#include "octavo/base/text.h"
#include "octavo/dataset/permutation.h"

namespace octavo {
namespace {

// `valid` positions from `begin` on, padded to `length`; reads valid + 1 tokens.
Sequence read_sequence(const TokenSource& source, std::int64_t begin, std::int64_t valid, std::int64_t length) {
  Sequence sequence;
  sequence.tokens.resize(static_cast<std::size_t>(length) + 1, 0);
  source.read(begin, std::span(sequence.tokens).first(static_cast<std::size_t>(valid) + 1));
  sequence.labels.assign(sequence.tokens.begin() + 1, sequence.tokens.end());
  std::fill(sequence.labels.begin() + valid, sequence.labels.end(), kIgnoredLabel);
  sequence.tokens.pop_back();
  return sequence;
}

}  // namespace

Batches::Batches(const TokenSource& source, const Config& config)
    : BatchSource(config.sequence_length, config.batch_size),
      source_(source),
      seed_(config.seed),
      num_windows_(std::max<std::int64_t>(1, source.size() / config.sequence_length - 1)) {
  if (source.size() < config.sequence_length + 1) {
    throw UsageError(cat("[dataset] ", source.name(), " has ", source.size(), " tokens; sequence_length=",
                         config.sequence_length, " needs at least ", config.sequence_length + 1,
                         " (a sequence and the token after it); use more text or shorter sequences"));
  }
}

std::int64_t Batches::begin(std::int64_t step, std::int64_t index) const {
  check_place(step, index);
  const std::int64_t visit = step * batch_size() + index;
  const std::int64_t epoch = visit / num_windows_;
  const CounterRandom epoch_draws(hash_key(seed_, "epoch"));
  // The furthest start that leaves W windows and the last label in the file; T offsets are all there are to choose
  // from.
  const std::int64_t spare = source_.size() - 1 - num_windows_ * sequence_length();
  const std::int64_t num_offsets = std::min(sequence_length() - 1, spare) + 1;
  const auto counter = static_cast<std::uint64_t>(2 * epoch);
  const auto offset = static_cast<std::int64_t>(epoch_draws.below(static_cast<std::uint64_t>(num_offsets), counter));
  return offset + sequence_length() * permute(visit % num_windows_, num_windows_, epoch_draws.bits(counter + 1));
}

Sequence Batches::sequence(std::int64_t step, std::int64_t index) const {
  return read_sequence(source_, begin(step, index), sequence_length(), sequence_length());
}

std::int64_t Batches::num_labels(std::int64_t step) const {
  check_place(step, 0);
  return batch_size() * sequence_length();
}

ValidationBatches::ValidationBatches(const TokenSource& source, std::int64_t sequence_length, std::int64_t batch_size)
    : BatchSource(sequence_length, batch_size), source_(source) {
  if (source.size() < 2) {
    throw UsageError(cat("[dataset] ", source.name(), " has ", source.size(), " token; validation needs at least 2"));
  }
}

std::int64_t ValidationBatches::num_sequences() const {
  return (source_.size() - 1 + sequence_length() - 1) / sequence_length();
}

std::int64_t ValidationBatches::num_steps() const {
  return (num_sequences() + batch_size() - 1) / batch_size();
}

Sequence ValidationBatches::sequence(std::int64_t step, std::int64_t index) const {
  check_place(step, index);
  const std::int64_t begin = std::min((step * batch_size() + index) * sequence_length(), source_.size() - 1);
  const std::int64_t valid = std::min(sequence_length(), source_.size() - 1 - begin);
  return read_sequence(source_, begin, valid, sequence_length());
}

std::int64_t ValidationBatches::num_labels(std::int64_t step) const {
  check_place(step, 0);
  const std::int64_t batch_positions = batch_size() * sequence_length();
  return std::clamp<std::int64_t>(source_.size() - 1 - step * batch_positions, 0, batch_positions);
}

}  // namespace octavo
