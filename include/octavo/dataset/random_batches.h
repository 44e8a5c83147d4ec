// Batches that need no file, made to expose mistakes: random tokens, and labels that are ragged on purpose, so that a
// loss averaged per rank or per sequence instead of per label is visibly wrong.
#pragma once

#include <cstdint>

#include "octavo/dataset/batch_source.h"

namespace octavo {

/// Tokens are uniform in [0, vocab_size). Of a sequence's labels (the next tokens) only some are kept, at random
/// places; the others are ignored. How many differs from sequence to sequence (all distinct if T >= B), from about T
/// down to at most max(1, T / 16) in one sequence of every batch with B >= 2.
class RandomBatches : public BatchSource {
 public:
  struct Config {
    std::int64_t vocab_size;       // in [1, 2^31)
    std::int64_t sequence_length;  // T >= 1
    std::int64_t batch_size;       // B >= 1
    std::uint64_t seed = 0;
  };

  /// Throws UsageError if a size is out of range.
  explicit RandomBatches(const Config& config);

  Sequence sequence(std::int64_t step, std::int64_t index) const override;
  std::int64_t num_labels(std::int64_t step) const override;

 private:
  std::int64_t kept_labels(std::int64_t step, std::int64_t index) const;

  std::int64_t vocab_size_;
  std::uint64_t seed_;
};

}  // namespace octavo
