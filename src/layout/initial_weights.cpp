#include "octavo/layout/initial_weights.h"

#include <algorithm>
#include <cmath>

#include "octavo/base/random.h"

namespace octavo {
namespace {

// x with softplus(x) = step, for a step of DeltaNet between 1e-3 and 0.1 as `uniform` goes from 0 to 1.
double inverse_step(double uniform) {
  constexpr double kLeast = 1e-3, kMost = 0.1;
  const double step = kLeast * std::pow(kMost / kLeast, uniform);
  return step + std::log(-std::expm1(-step));
}

}  // namespace

void fill_initial_rows(const Parameter& parameter, std::uint64_t seed, std::int64_t first_row, std::span<float> rows) {
  using Kind = Initializer::Kind;
  const auto& [kind, scale] = parameter.initializer;
  const CounterRandom random(hash_key(seed, parameter.name));
  const auto first = static_cast<std::uint64_t>(first_row * parameter.matrix_columns());
  const auto fill_each = [&](const auto& value_of) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(value_of(random.uniform(first + i)));
  };
  switch (kind) {
    case Kind::Normal:
      random.fill_normal(first, rows, scale);
      break;
    case Kind::Ones:
      std::fill(rows.begin(), rows.end(), 1.0f);
      break;
    case Kind::Zeros:
      std::fill(rows.begin(), rows.end(), 0.0f);
      break;
    case Kind::Uniform:
      fill_each([range = scale](double uniform) { return range * (2 * uniform - 1); });
      break;
    case Kind::LogUniform:
      fill_each([most = scale](double uniform) { return std::log(1 + uniform * (most - 1)); });
      break;
    case Kind::InverseStep:
      fill_each(inverse_step);
      break;
  }
}

}  // namespace octavo
