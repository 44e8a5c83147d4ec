#include "octavo/parallel/param_store.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <numeric>

using namespace octavo;

namespace {
ModelSpec odd_model() {
  ModelSpec model;
  model.model_type = "qwen3";
  model.hidden_size = 6;
  model.vocab_size = 7;
  model.layers.push_back({AttentionSpec{4, 2, 2, true, {}}, GatedMlpSpec{5}});
  return model;
}

/// A different value for every element of every parameter.
double value_of(const Parameter& parameter, std::int64_t element) {
  return static_cast<double>(std::hash<std::string>()(parameter.name) % 1000) + static_cast<double>(element) / 1024.0;
}

void fill(const Parameter& parameter, std::int64_t first_row, std::span<double> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = value_of(parameter, first_row * parameter.matrix_columns() + static_cast<std::int64_t>(i));
  }
}
}  // namespace

TEST_CASE("what was loaded in checkpoint order is read back in checkpoint order") {
  const ParamTable table(odd_model());
  ParamStore store(table, place(table, parse_layout("data=2"), 1), ElementType::Float64, at::kCPU, false);
  store.load(fill);
  for (const Parameter& parameter : table.parameters()) {
    CAPTURE(parameter.name);
    for (std::int64_t first = 0; first < parameter.matrix_rows(); ++first) {
      std::vector<double> expected(parameter.elements() - first * parameter.matrix_columns()), seen(expected.size());
      fill(parameter, first, expected);
      store.read_rows(store.weights(), parameter, first, seen);
      CHECK(seen == expected);
    }
  }
}

TEST_CASE("over the ranks the primary elements are every element once") {
  const ParamTable table(odd_model());
  std::vector<std::vector<double>> sums;
  for (const Parameter& parameter : table.parameters()) sums.emplace_back(parameter.elements(), 0.0);
  for (int rank = 0; rank < 3; ++rank) {
    ParamStore store(table, place(table, parse_layout("data=3:zero1"), rank, 100), ElementType::Float32, at::kCPU,
                     true);
    store.gradients().fill_(1.0);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::vector<double> own(sums[i].size(), 0.0);
      store.read_primary_rows(store.gradients(), table.parameters()[i], 0, own);
      for (std::size_t j = 0; j < own.size(); ++j) sums[i][j] += own[j];
    }
  }
  for (const auto& parameter : sums) {
    for (const double count : parameter) CHECK(count == 1.0);
  }
}

TEST_CASE("bfloat16 masters start from the unrounded weights") {
  const ParamTable table(odd_model());
  ParamStore store(table, place(table, parse_layout("data=2:zero1"), 1), ElementType::BFloat16, at::kCPU, true);
  const double fine = 1.0 + 1.0 / 1024;  // not a bfloat16
  store.load(
      [&](const Parameter&, std::int64_t, std::span<double> rows) { std::fill(rows.begin(), rows.end(), fine); });
  double fine_masters = 0, optimized = 0;
  for (int i = 0; i < static_cast<int>(store.placement().optimized.size()); ++i) {
    fine_masters += (store.masters(i) == fine).sum().item<double>();
    optimized += static_cast<double>(store.placement().optimized[i].size());
  }
  CHECK(fine_masters > 0);
  CHECK(fine_masters <= optimized);
  CHECK((store.weights().to(at::kDouble) == fine).sum().item<double>() == 0);
}
