#include "octavo/proof/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1e", value);
  return text;
}

/// |a - b|, infinite where a comparison would be meaningless.
double distance_of(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b);
}

double largest(const std::vector<double>& values) {
  double found = 0;
  for (const double value : values) found = std::max(found, std::abs(value));
  return found;
}

ProofRow judged(ProofRow row) {
  row.passed = row.distance <= row.limit;
  return row;
}

void check_same_shapes(const NamedTensors& values, const NamedTensors& expected) {
  internal_check(values.names == expected.names, "[proof] two runs name different tensors");
  for (std::size_t i = 0; i < values.names.size(); ++i) {
    internal_check(values.values[i].size() == expected.values[i].size(),
                   "[proof] " + values.names[i] + " has different sizes in two runs");
  }
}

}  // namespace

bool ProofReport::passed() const {
  return !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const ProofRow& row) { return row.passed; });
}

std::string ProofReport::to_string() const {
  std::string text;
  for (const ProofRow& row : rows) {
    std::string name = row.quantity;
    name.resize(std::max<std::size_t>(name.size(), 26), ' ');
    text += cat(row.passed ? "  ok    " : "  FAIL  ", name, " ", scientific(row.distance), " (limit ",
                scientific(row.limit), ", ", row.measure, ")",
                row.worst_tensor.empty() ? "" : cat("  worst: ", row.worst_tensor), "\n");
  }
  return text;
}

double largest_of_all(const NamedTensors& tensors) {
  double found = 0;
  for (const std::vector<double>& tensor : tensors.values) found = std::max(found, largest(tensor));
  return found;
}

ProofRow compare_scalars(const std::string& quantity, const std::vector<double>& values,
                         const std::vector<double>& expected, double limit, bool relative) {
  internal_check(values.size() == expected.size(), "[proof] " + quantity + ": two runs have different lengths");
  ProofRow row{quantity, "", 0, limit, relative ? "relative" : "absolute", false};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = relative ? std::max(std::abs(expected[i]), std::numeric_limits<double>::min()) : 1.0;
    const double distance = distance_of(values[i], expected[i]);
    row.distance = std::max(row.distance, std::isfinite(distance) ? distance / scale : distance);
  }
  return judged(row);
}

ProofRow compare_tensors(const std::string& quantity, const NamedTensors& values, const NamedTensors& expected,
                         double limit, bool relative, double noise) {
  check_same_shapes(values, expected);
  ProofRow row{quantity, "", 0, limit, relative ? "of the largest entry" : "absolute", false};
  const double rounding = noise * largest_of_all(expected);
  for (std::size_t i = 0; i < values.names.size(); ++i) {
    double distance = 0;
    for (std::size_t j = 0; j < values.values[i].size(); ++j) {
      distance = std::max(distance, distance_of(values.values[i][j], expected.values[i][j]));
    }
    if (distance <= rounding) continue;
    if (relative && std::isfinite(distance)) {
      distance /= std::max(largest(expected.values[i]), std::numeric_limits<double>::min());
    }
    if (distance > row.distance) {
      row.distance = distance;
      row.worst_tensor = values.names[i];
    }
  }
  return judged(row);
}

std::vector<ProofRow> compare_adam_weights(const std::string& quantity, const NamedTensors& values,
                                           const NamedTensors& expected, double close, double far,
                                           const NamedTensors* quietest, double noise) {
  std::vector<ProofRow> rows = {compare_tensors(quantity, values, expected, far, /*relative=*/false)};
  if (quietest != nullptr) check_same_shapes(values, *quietest);
  double beyond = 0, total = 0;
  for (std::size_t i = 0; i < values.names.size(); ++i) {
    for (std::size_t j = 0; j < values.values[i].size(); ++j) {
      const bool is_noise = quietest != nullptr && quietest->values[i][j] <= noise;
      if (!is_noise && !(distance_of(values.values[i][j], expected.values[i][j]) <= close)) ++beyond;
    }
    total += static_cast<double>(values.values[i].size());
  }
  rows.push_back(judged(
      {quantity, "", total > 0 ? beyond / total : 0, 1e-3, cat("share of entries beyond ", scientific(close)), false}));
  return rows;
}

}  // namespace octavo
