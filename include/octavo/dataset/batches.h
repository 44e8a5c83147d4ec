// Training batches from a token file. Letters: N tokens in the file, T per sequence, B sequences per step.
//
// An epoch cuts the file into W = max(1, floor(N / T) - 1) windows of T tokens that touch but do not overlap, the first
// beginning at an offset in [0, T) that is drawn for the epoch, and visits each once in an order drawn for the epoch.
// So an epoch predicts W * T tokens, each once; it leaves out fewer than 2 T, other ones in other epochs. Sequence
// `index` of `step` is visit number step * B + index; epochs follow each other without a gap, also inside a batch.
#pragma once

#include <cstdint>

#include "octavo/dataset/batch_source.h"
#include "octavo/dataset/token_source.h"

namespace octavo {

class Batches : public BatchSource {
 public:
  struct Config {
    std::int64_t sequence_length;  // T >= 1
    std::int64_t batch_size;       // B >= 1
    std::uint64_t seed = 0;        // of the offsets and orders
  };

  /// `source` must outlive this. Throws UsageError if the file has fewer than T + 1 tokens, or a size is < 1.
  Batches(const TokenSource& source, const Config& config);

  /// Every label is the token that follows in the file; none is ignored.
  Sequence sequence(std::int64_t step, std::int64_t index) const override;
  std::int64_t num_labels(std::int64_t step) const override;

  std::int64_t windows_per_epoch() const { return num_windows_; }  // W

  /// Where in the file the sequence begins: it reads tokens [begin, begin + T].
  std::int64_t begin(std::int64_t step, std::int64_t index) const;

 private:
  const TokenSource& source_;
  std::uint64_t seed_;
  std::int64_t num_windows_;
};

/// Every token of the file but the first is predicted exactly once: consecutive windows of T positions in file order,
/// B per step; the last window is padded to T with token 0 and ignored labels, the last batch with sequences that are
/// padding only.
class ValidationBatches : public BatchSource {
 public:
  /// `source` must outlive this. Throws UsageError if the file has fewer than 2 tokens, or a size is < 1.
  ValidationBatches(const TokenSource& source, std::int64_t sequence_length, std::int64_t batch_size);

  std::int64_t num_sequences() const;  // ceil((N - 1) / T)
  std::int64_t num_steps() const;      // ceil(num_sequences() / B); later steps hold only padding

  Sequence sequence(std::int64_t step, std::int64_t index) const override;
  std::int64_t num_labels(std::int64_t step) const override;

 private:
  const TokenSource& source_;
};

}  // namespace octavo
