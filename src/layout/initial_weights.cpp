#include "octavo/layout/initial_weights.h"

#include <algorithm>

#include "octavo/base/random.h"

namespace octavo {

void fill_initial_rows(const Parameter& parameter, std::uint64_t seed, std::int64_t first_row, std::span<float> rows) {
  if (parameter.initializer.kind == Initializer::Kind::Ones) {
    std::fill(rows.begin(), rows.end(), 1.0f);
    return;
  }
  const CounterRandom random(hash_key(seed, parameter.name));
  random.fill_normal(static_cast<std::uint64_t>(first_row * parameter.matrix_columns()), rows,
                     parameter.initializer.standard_deviation);
}

}  // namespace octavo
