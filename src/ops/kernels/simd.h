// What the row kernels share: an attribute that compiles a function once per instruction set (the loader picks one),
// bfloat16 as plain bits, and an exponential that compilers can vectorise. No libtorch in this folder: the files are
// compiled with their own floating-point flags (src/ops/CMakeLists.txt) and without the precompiled header.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define OCTAVO_LOOPS __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define OCTAVO_LOOPS
#endif

namespace octavo::ops::kernels {

struct Bf16 {
  std::uint16_t bits;
};

/// The type that statistics and sums of T are kept in: float, or double for double.
template <class T>
struct ComputeTypeOf {
  using type = float;
};
template <>
struct ComputeTypeOf<double> {
  using type = double;
};
template <class T>
using ComputeType = typename ComputeTypeOf<T>::type;

inline float load(float value) {
  return value;
}
inline double load(double value) {
  return value;
}
inline float load(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline void store(float& place, float value) {
  place = value;
}
inline void store(double& place, double value) {
  place = value;
}
/// Rounds to the nearest, ties to even; NaN stays NaN.
inline void store(Bf16& place, float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  place.bits = static_cast<std::uint16_t>(value != value ? 0x7fc0u : rounded);
}

/// `value` as T would keep it.
template <class T>
inline ComputeType<T> rounded_to(ComputeType<T> value) {
  T kept;
  store(kept, value);
  return load(kept);
}

/// e^x within 2 ulp. Arguments below -87.33 give 0 (the result would be subnormal), above 88.37 they are capped; NaN
/// stays NaN. Cody and Waite's reduction, the polynomial of Cephes' expf.
inline float exponential(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float capped = x > 88.37f ? 88.37f : x;
  const float shifted = capped * 1.44269504088896341f + kRounder;
  const float power = shifted - kRounder;
  const float r = (capped - power * 0.693359375f) + power * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder)) << 23;
  const float scaled = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  return x < -87.33f ? 0.0f : scaled;
}
inline double exponential(double x) {
  return std::exp(x);
}

/// 2^x for x <= 127, within 2 ulp: cheaper than exponential() where the caller can work in units of log 2. Arguments
/// below -126 give 0; NaN stays NaN. The polynomial meets 2^f at Chebyshev's points of |f| <= 1/2 (error 2.6e-9).
inline float power_of_two(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  const float shifted = x + kRounder;
  const float f = x - (shifted - kRounder);
  float p = 0.000154614446986f;
  p = p * f + 0.00134004281776f;
  p = p * f + 0.00961805667852f;
  p = p * f + 0.0555032722667f;
  p = p * f + 0.240226509223f;
  p = p * f + 0.693147206703f;
  p = p * f + 1.0f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  const float scaled = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  return x < -126.0f ? 0.0f : scaled;
}
inline double power_of_two(double x) {
  return std::exp2(x);
}

/// Independent partial sums of a reduction: a fixed number, so that the order of additions is fixed on every machine.
inline constexpr int kLanes = 16;

/// The sum of the lanes, in a fixed order.
template <class S>
inline S sum_of_lanes(const S (&lanes)[kLanes]) {
  S half[kLanes / 2];
  for (int lane = 0; lane < kLanes / 2; ++lane) half[lane] = lanes[lane] + lanes[lane + kLanes / 2];
  S sum = 0;
  for (const S value : half) sum += value;
  return sum;
}

}  // namespace octavo::ops::kernels
