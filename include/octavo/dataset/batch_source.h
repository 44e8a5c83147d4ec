// What a training step or an evaluation reads: sequence `index` of the batch of `step`, as a pure function of both.
// There is no position to keep, so any rank can make any sequence and a restart needs only the step.
#pragma once

#include <cstdint>
#include <vector>

namespace octavo {

inline constexpr std::int64_t kIgnoredLabel = -100;  // a position that has nothing to predict

/// T positions: position t holds tokens[t] and has to predict labels[t], the token that follows or kIgnoredLabel.
struct Sequence {
  std::vector<std::int64_t> tokens;  // [T]
  std::vector<std::int64_t> labels;  // [T]
};

/// Local (no rank talks to another), thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  std::int64_t sequence_length() const { return sequence_length_; }  // T, tokens per sequence
  std::int64_t batch_size() const { return batch_size_; }            // B, sequences per step, all ranks together

  /// Sequence `index` of the batch of `step`; step >= 0, 0 <= index < B, else InternalError.
  virtual Sequence sequence(std::int64_t step, std::int64_t index) const = 0;

  /// Labels in the whole batch of `step` that are not ignored: what a mean loss is divided by, known to every rank
  /// without asking the others.
  virtual std::int64_t num_labels(std::int64_t step) const = 0;

 protected:
  /// Throws UsageError unless both are in [1, 2^31).
  BatchSource(std::int64_t sequence_length, std::int64_t batch_size);
  void check_place(std::int64_t step, std::int64_t index) const;

 private:
  std::int64_t sequence_length_;
  std::int64_t batch_size_;
};

}  // namespace octavo
