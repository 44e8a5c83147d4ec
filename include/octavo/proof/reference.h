// Parity with stored numbers: a folder with a model and reference.safetensors, as transformers computed them.
#pragma once

#include <filesystem>

#include "octavo/proof/training_run.h"

namespace octavo {

/// The batch of a reference folder: its input_ids, and its labels shifted to where they are predicted.
class ReferenceBatch : public BatchSource {
 public:
  /// From reference.safetensors, or the file that reference.json names. Throws UsageError if the file lacks them or
  /// they are not int64 [B, T].
  static ReferenceBatch read(const std::filesystem::path& folder);

  Sequence sequence(std::int64_t step, std::int64_t index) const override;
  std::int64_t num_labels(std::int64_t step) const override;

 private:
  ReferenceBatch(std::int64_t length, std::int64_t count) : BatchSource(length, count) {}

  std::vector<Sequence> sequences_;
};

/// Compares hidden states, logits, loss, every gradient, and three AdamW steps on `options.layout` with the stored
/// numbers, within the limits that belong to them (at the top of reference.cpp). Throws UsageError for a folder without
/// them. The stored numbers are float32: compute in float32 or float64. Where ranks are processes, rank 0 compares and
/// the others get an empty report.
ProofReport compare_with_reference(const std::filesystem::path& folder, const TrainingRunOptions& options);

}  // namespace octavo
