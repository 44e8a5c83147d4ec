#include "comm/threads/sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

// Wider vectors where the processor has them: a third of the time for bfloat16, half for many ranks. Sanitizers and
// other platforms cannot choose a function at load time.
#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define OCTAVO_WIDEST_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OCTAVO_WIDEST_VECTORS
#endif

namespace octavo {
namespace {

// Elements summed at a time: accumulator and one source together stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

// Wrapping addition: a sum of int64 beyond the range must not be undefined.
using Int64Bits = std::uint64_t;

struct Bfloat16 {
  std::uint16_t bits;
};

template <class T>
T widen(T value) {
  return value;
}

float widen(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class T>
void narrow(T* out, T value) {
  *out = value;
}

void narrow(Bfloat16* out, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest_even = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  constexpr std::uint32_t kQuietNan = 0x7fc0u;
  out->bits = static_cast<std::uint16_t>(value != value ? kQuietNan : nearest_even);
}

template <class T>
using Wide = decltype(widen(T{}));

// `ivdep`: out may be a source, but then an iteration reads and writes the same element.
template <class T, class First>
[[gnu::always_inline]] inline void add(T* out, const First* first, const T* second, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) narrow(&out[i], widen(first[i]) + widen(second[i]));
}

template <class T>
[[gnu::always_inline]] inline void sum_typed(std::byte* out_bytes, std::span<const std::byte* const> sources,
                                             std::int64_t count) {
  T* out = reinterpret_cast<T*>(out_bytes);
  const auto source = [&](std::size_t rank) { return reinterpret_cast<const T*>(sources[rank]); };
  if (sources.size() == 1) {
    if (out != source(0)) std::memcpy(out, source(0), count * sizeof(T));
    return;
  }
  if (sources.size() == 2) return add(out, source(0), source(1), count);
  std::array<Wide<T>, kBlock> sums;
  const std::size_t last = sources.size() - 1;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    const T* first = source(0) + begin;
    const T* second = source(1) + begin;
    for (std::int64_t i = 0; i < size; ++i) sums[i] = widen(first[i]) + widen(second[i]);
    for (std::size_t rank = 2; rank < last; ++rank) {
      const T* next = source(rank) + begin;
      for (std::int64_t i = 0; i < size; ++i) sums[i] += widen(next[i]);
    }
    add(out + begin, sums.data(), source(last) + begin, size);
  }
}

}  // namespace

OCTAVO_WIDEST_VECTORS
void sum_over_ranks(WireType type, std::byte* out, std::span<const std::byte* const> sources, std::int64_t count) {
  if (count == 0) return;
  switch (type) {
    case WireType::F32:
      return sum_typed<float>(out, sources, count);
    case WireType::F64:
      return sum_typed<double>(out, sources, count);
    case WireType::BF16:
      return sum_typed<Bfloat16>(out, sources, count);
    case WireType::I64:
      return sum_typed<Int64Bits>(out, sources, count);
  }
}

}  // namespace octavo
