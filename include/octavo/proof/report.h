// What a proof says: quantity by quantity, how far two runs are apart, and where most.
#pragma once

#include <string>
#include <vector>

namespace octavo {

struct ProofRow {
  std::string quantity;      // "loss", "gradients", "weights after 3 steps"
  std::string worst_tensor;  // where the distance is largest; empty for a scalar
  double distance = 0;       // as `measure` says
  double limit = 0;
  std::string measure;  // "relative", "of the largest entry", "absolute", "entries beyond 1e-05"
  bool passed = false;  // distance <= limit, and everything finite
};

struct ProofReport {
  std::vector<ProofRow> rows;

  bool passed() const;
  /// A line per row.
  std::string to_string() const;
};

/// A row for a list of scalars: the largest |a - b|, over |b| if `relative`.
ProofRow compare_scalars(const std::string& quantity, const std::vector<double>& values,
                         const std::vector<double>& expected, double limit, bool relative);

/// Named tensors, each a flat list of entries.
struct NamedTensors {
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
};

/// The largest |entry| of all tensors; 0 without any.
double largest_of_all(const NamedTensors& tensors);

/// The largest |a - b|, over the largest |entry of b| of its tensor if `relative`. A distance of at most `noise` times
/// the largest |entry of b| of all tensors counts as none: a tensor that is zero but for rounding has no scale of its
/// own.
ProofRow compare_tensors(const std::string& quantity, const NamedTensors& values, const NamedTensors& expected,
                         double limit, bool relative, double noise = 0);

/// Weights after Adam steps: 99.9% of all entries within `close`, and all within `far` (absolute). Two rows: the first
/// Adam step moves an entry by the learning rate times the sign of what may be a rounding error. Where it surely is
/// one, because the entry's gradient in some step is at most `noise` times the largest of all, only `far` counts;
/// `quietest` are these ratios, the smallest over the steps, or null to count every entry.
std::vector<ProofRow> compare_adam_weights(const std::string& quantity, const NamedTensors& values,
                                           const NamedTensors& expected, double close, double far,
                                           const NamedTensors* quietest = nullptr, double noise = 0);

}  // namespace octavo
