// Random numbers without a state: draw number `counter` of a key is a pure function of both, so any rank can make any
// part of a tensor or batch, in any order, and every layout starts from the same model.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo {

/// A key for the draws called `name` under `seed`: different names or seeds give unrelated draws.
std::uint64_t hash_key(std::uint64_t seed, std::string_view name);

/// Philox4x32-10. Only exact, correctly rounded operations are used, so a draw has the same bits on every IEEE machine
/// and in every function below: element i of a bulk fill equals the single draw of its counter. Thread-safe; holds
/// only its key.
class CounterRandom {
 public:
  explicit CounterRandom(std::uint64_t key) : key_(key) {}

  /// 64 uniform bits.
  std::uint64_t bits(std::uint64_t counter) const;

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform(std::uint64_t counter) const;

  /// Uniform in {0, .., bound-1}; bound >= 1. The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound, std::uint64_t counter) const;

  /// Standard normal, the inverse distribution function of one draw (error below 1e-14); |value| < 8.3.
  double normal(std::uint64_t counter) const;

  /// out[i] = float(std_deviation * normal(first_counter + i)). Some 10 ns per element on one core.
  void fill_normal(std::uint64_t first_counter, std::span<float> out, double std_deviation) const;

 private:
  std::uint64_t key_;
};

}  // namespace octavo
