// Built with -ffp-contract=off (see CMakeLists.txt): fused multiply-adds would give other bits on other machines.
#include "octavo/base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace octavo {
namespace {

// Moves every input bit to every output bit: the finaliser of splitmix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), counter words {block, 0}. Words are
// kept in 64-bit lanes, for the multiplications are 32 x 32 -> 64.
struct Block {
  std::uint64_t word[4];
};

inline Block philox(std::uint64_t block, std::uint64_t key) {
  constexpr std::uint64_t kLow = 0xFFFFFFFFu;
  std::uint64_t c0 = block & kLow, c1 = block >> 32, c2 = 0, c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53u * c0;
    const std::uint64_t p1 = 0xCD9E8D57u * c2;
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1 & kLow;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0 & kLow;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The middle of (0, 1)'s 2^52 equal parts that the upper bits choose: never 0 or 1, and symmetric about 1/2.
inline double open_uniform(std::uint64_t bits) {
  return (std::bit_cast<double>((bits >> 12) | 0x3FF0000000000000u) - 1.0) + 0x1p-53;
}

// Natural logarithm of a positive normal number, to some 1e-16: the C library's differ between machines in the last
// bit.
double log_positive(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1), s2 = s * s;  // log(m) = 2 artanh(s)
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * s2;
  return exponent * 0.69314718055994531 + 2 * (s + s * series);
}

// coefficients[0] r^7 + .. + coefficients[7].
inline double polynomial(const double (&coefficients)[8], double r) {
  double value = coefficients[0];
  for (int i = 1; i < 8; ++i) value = value * r + coefficients[i];
  return value;
}

// The inverse of the normal distribution function at p = q + 1/2: Wichura's algorithm AS 241 (PPND16), three ratios of
// polynomials for |q| <= kCentral, for p down to exp(-25), and for the rest.
constexpr double kCentral = 0.425;
constexpr double kCentreOver[8] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                                   45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                                   133.14166789178437745, 3.387132872796366608};
constexpr double kCentreUnder[8] = {
    5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
    5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1.0};
constexpr double kTailOver[8] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                 1.27045825245236838258,   3.64784832476320460504,   5.7694972214606914055,
                                 4.6303378461565452959,    1.42343711074968357734};
constexpr double kTailUnder[8] = {
    1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455,    1.6763848301838038494,   2.05319162663775882187,   1.0};
constexpr double kFarOver[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                                0.026532189526576123093,   0.29656057182850489123,    1.7848265399172913358,
                                5.4637849111641143699,     6.6579046435011037772};
constexpr double kFarUnder[8] = {
    2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
    0.0148753612908506148525,   0.13692988092273580531,   0.59983220655588793769,   1.0};

inline double normal_centre(double q) {
  const double r = kCentral * kCentral - q * q;
  return q * polynomial(kCentreOver, r) / polynomial(kCentreUnder, r);
}

double normal_tail(double q) {
  const double r = std::sqrt(-log_positive(q < 0 ? 0.5 + q : 0.5 - q));
  const double value = r <= 5 ? polynomial(kTailOver, r - 1.6) / polynomial(kTailUnder, r - 1.6)
                              : polynomial(kFarOver, r - 5) / polynomial(kFarUnder, r - 5);
  return q < 0 ? -value : value;
}

inline bool is_central(double q) {
  return std::abs(q) <= kCentral;
}

}  // namespace

std::uint64_t hash_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
  return mix(mix(seed + 0x9E3779B97F4A7C15u) ^ mix(hash));
}

std::uint64_t CounterRandom::bits(std::uint64_t counter) const {
  const Block block = philox(counter / 2, key_);
  return counter % 2 == 0 ? block.word[0] | block.word[1] << 32 : block.word[2] | block.word[3] << 32;
}

double CounterRandom::uniform(std::uint64_t counter) const {
  return static_cast<double>(bits(counter) >> 11) * 0x1p-53;
}

std::uint64_t CounterRandom::below(std::uint64_t bound, std::uint64_t counter) const {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bits(counter)) * bound >> 64);
}

double CounterRandom::normal(std::uint64_t counter) const {
  const double q = open_uniform(bits(counter)) - 0.5;
  return is_central(q) ? normal_centre(q) : normal_tail(q);
}

// Passes over a few hundred elements at a time: the compiler vectorises the first two, the third mends the 15% that lie
// in the tails.
void CounterRandom::fill_normal(std::uint64_t first_counter, std::span<float> out, double std_deviation) const {
  constexpr std::size_t kChunk = 512;
  double q[kChunk + 2];
  double value[kChunk];
  for (std::size_t done = 0; done < out.size(); done += kChunk) {
    const std::size_t count = std::min(kChunk, out.size() - done);
    const std::uint64_t first = first_counter + done;
    const std::uint64_t first_block = first / 2;
    const std::size_t skip = first % 2;
    const std::size_t blocks = (count + skip + 1) / 2;
    for (std::size_t i = 0; i < blocks; ++i) {
      const Block block = philox(first_block + i, key_);
      q[2 * i] = open_uniform(block.word[0] | block.word[1] << 32) - 0.5;
      q[2 * i + 1] = open_uniform(block.word[2] | block.word[3] << 32) - 0.5;
    }
    const double* const from = q + skip;
    for (std::size_t i = 0; i < count; ++i) value[i] = normal_centre(from[i]);
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_central(from[i])) value[i] = normal_tail(from[i]);
    }
    for (std::size_t i = 0; i < count; ++i) out[done + i] = static_cast<float>(std_deviation * value[i]);
  }
}

}  // namespace octavo
