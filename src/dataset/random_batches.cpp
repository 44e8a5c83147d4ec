#include "octavo/dataset/random_batches.h"

#include <algorithm>
#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/random.h"
#include "octavo/base/text.h"
#include "octavo/dataset/permutation.h"

namespace octavo {

RandomBatches::RandomBatches(const Config& config)
    : BatchSource(config.sequence_length, config.batch_size), vocab_size_(config.vocab_size), seed_(config.seed) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (vocab_size_ < 1 || vocab_size_ > kMost) {
    throw UsageError(cat("[dataset] vocab_size=", vocab_size_, " must be in 1 .. ", kMost));
  }
}

// Sequence j of the B, in an order drawn for the step, keeps between T j / B and T (j + 1) / B labels; the first few.
std::int64_t RandomBatches::kept_labels(std::int64_t step, std::int64_t index) const {
  const std::int64_t T = sequence_length(), B = batch_size();
  const CounterRandom draws(hash_key(seed_, "kept labels"));
  const std::uint64_t counter = 2 * static_cast<std::uint64_t>(step * B + index);
  const std::int64_t j = permute(index, B, draws.bits(2 * static_cast<std::uint64_t>(step) + 1));
  const bool few = j == 0 && B > 1;
  const std::int64_t low = B == 1 ? T / 2 : T * j / B;
  const std::int64_t high = few ? std::min(T / 16, T / B) : T * (j + 1) / B;
  const std::int64_t choices = std::max<std::int64_t>(1, high - low);
  return 1 +
         std::min(T - 1, low + static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(choices), counter)));
}

Sequence RandomBatches::sequence(std::int64_t step, std::int64_t index) const {
  check_place(step, index);
  const std::int64_t T = sequence_length();
  const std::int64_t number = step * batch_size() + index;
  const CounterRandom tokens(hash_key(seed_, "tokens"));
  const std::uint64_t places_key =
      CounterRandom(hash_key(seed_, "kept places")).bits(static_cast<std::uint64_t>(number));
  const std::int64_t kept = kept_labels(step, index);
  const auto token = [&](std::int64_t t) {
    return static_cast<std::int64_t>(
        tokens.below(static_cast<std::uint64_t>(vocab_size_), static_cast<std::uint64_t>(number * (T + 1) + t)));
  };
  Sequence sequence;
  sequence.tokens.reserve(static_cast<std::size_t>(T));
  sequence.labels.reserve(static_cast<std::size_t>(T));
  for (std::int64_t t = 0; t < T; ++t) {
    sequence.tokens.push_back(token(t));
    sequence.labels.push_back(permute(t, T, places_key) < kept ? token(t + 1) : kIgnoredLabel);
  }
  return sequence;
}

std::int64_t RandomBatches::num_labels(std::int64_t step) const {
  check_place(step, 0);
  std::int64_t sum = 0;
  for (std::int64_t index = 0; index < batch_size(); ++index) sum += kept_labels(step, index);
  return sum;
}

}  // namespace octavo
