#include "octavo/checkpoint/storage_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and so is this reader");

struct Row {
  StorageType type;
  std::string_view name;
  int bits;
};

constexpr std::array kTypes = {
    Row{StorageType::F64, "F64", 64},       Row{StorageType::F32, "F32", 32},
    Row{StorageType::F16, "F16", 16},       Row{StorageType::BF16, "BF16", 16},
    Row{StorageType::I64, "I64", 64},       Row{StorageType::I32, "I32", 32},
    Row{StorageType::I16, "I16", 16},       Row{StorageType::I8, "I8", 8},
    Row{StorageType::U64, "U64", 64},       Row{StorageType::U32, "U32", 32},
    Row{StorageType::U16, "U16", 16},       Row{StorageType::U8, "U8", 8},
    Row{StorageType::Bool, "BOOL", 8},      Row{StorageType::C64, "C64", 64},
    Row{StorageType::F8E5M2, "F8_E5M2", 8}, Row{StorageType::F8E4M3, "F8_E4M3", 8},
    Row{StorageType::F8E8M0, "F8_E8M0", 8}, Row{StorageType::F6E2M3, "F6_E2M3", 6},
    Row{StorageType::F6E3M2, "F6_E3M2", 6}, Row{StorageType::F4, "F4", 4},
};

const Row& row(StorageType type) {
  for (const Row& candidate : kTypes) {
    if (candidate.type == type) return candidate;
  }
  throw InternalError("[checkpoint] a StorageType outside its enumeration");
}

// In integers where a denormal could arise: a rank's thread may flush denormals to zero.
float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7FFFu;
  const float tiny = static_cast<float>(magnitude) * 0x1p-24f;  // denormal halves
  const std::uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
  const std::uint32_t special = (magnitude << 13) | 0x7F800000u;  // infinity and NaN
  const std::uint32_t bits = magnitude < 0x0400u   ? std::bit_cast<std::uint32_t>(tiny)
                             : magnitude < 0x7C00u ? normal
                                                   : special;
  return std::bit_cast<float>(sign | bits);
}

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x0040u);  // a quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Rounding to float first and to bfloat16 then could round twice: a float that is not exact gets its last bit set,
// so that it is no longer a tie.
float to_odd_float(double value) {
  const auto nearest_value = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(nearest_value);
  if ((bits & 0x7F800000u) == 0x7F800000u || static_cast<double>(nearest_value) == value) return nearest_value;
  const bool away = (static_cast<double>(nearest_value) > value) == (value > 0);  // rounded up in magnitude
  if ((bits & 1u) == 0) bits += away ? -1 : 1;
  return std::bit_cast<float>(bits);
}

void check_size(StorageType type, std::size_t num_elements, std::size_t num_bytes) {
  internal_check(
      num_elements * static_cast<std::size_t>(row(type).bits / 8) == num_bytes,
      cat("[checkpoint] ", num_elements, " elements of ", row(type).name, " do not take ", num_bytes, " bytes"));
}

template <class Stored, class Value, class Convert>
void decode_each(std::span<const std::byte> bytes, std::span<Value> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<Value>(convert(stored));
  }
}

template <class Value>
void decode_any(StorageType type, std::span<const std::byte> bytes, std::span<Value> out) {
  check_size(type, out.size(), bytes.size());
  switch (type) {
    case StorageType::F64:
      return decode_each<double>(bytes, out, [](double value) { return value; });
    case StorageType::F32:
      return decode_each<float>(bytes, out, [](float value) { return value; });
    case StorageType::F16:
      return decode_each<std::uint16_t>(bytes, out, from_half);
    case StorageType::BF16:
      return decode_each<std::uint16_t>(bytes, out, from_bfloat16);
    default:
      throw InternalError(cat("[checkpoint] ", row(type).name, " holds no weights to decode"));
  }
}

template <class Stored, class Value, class Convert>
void encode_each(std::span<const Value> values, std::span<std::byte> bytes, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Stored stored = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

template <class Value, class ToBfloat16>
void encode_any(StorageType type, std::span<const Value> values, std::span<std::byte> bytes, ToBfloat16 bfloat16) {
  check_size(type, values.size(), bytes.size());
  switch (type) {
    case StorageType::F64:
      return encode_each<double>(values, bytes, [](Value value) { return double{value}; });
    case StorageType::F32:
      return encode_each<float>(values, bytes, [](Value value) { return static_cast<float>(value); });
    case StorageType::BF16:
      return encode_each<std::uint16_t>(values, bytes, bfloat16);
    default:
      throw InternalError(cat("[checkpoint] ", row(type).name, " is not written"));
  }
}

// An element is NaN or infinite when all bits of `exponent` are set.
template <class Bits>
std::optional<std::int64_t> first_with_exponent(std::span<const std::byte> bytes, Bits exponent) {
  constexpr std::size_t kBlock = 4096;  // elements looked at without a branch
  const std::size_t num_elements = bytes.size() / sizeof(Bits);
  const auto at = [&bytes](std::size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    return bits;
  };
  for (std::size_t begin = 0; begin < num_elements; begin += kBlock) {
    const std::size_t end = std::min(num_elements, begin + kBlock);
    Bits any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= static_cast<Bits>((at(i) & exponent) == exponent);
    if (any == 0) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if ((at(i) & exponent) == exponent) return static_cast<std::int64_t>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view storage_type_name(StorageType type) {
  return row(type).name;
}

std::optional<StorageType> storage_type_from_name(std::string_view name) {
  for (const Row& candidate : kTypes) {
    if (candidate.name == name) return candidate.type;
  }
  return std::nullopt;
}

int storage_bits(StorageType type) {
  return row(type).bits;
}

bool is_weight_type(StorageType type) {
  return type == StorageType::F64 || type == StorageType::F32 || type == StorageType::F16 || type == StorageType::BF16;
}

void decode(StorageType type, std::span<const std::byte> bytes, std::span<float> out) {
  decode_any(type, bytes, out);
}
void decode(StorageType type, std::span<const std::byte> bytes, std::span<double> out) {
  decode_any(type, bytes, out);
}

void encode(StorageType type, std::span<const float> values, std::span<std::byte> bytes) {
  encode_any(type, values, bytes, to_bfloat16);
}

void encode(StorageType type, std::span<const double> values, std::span<std::byte> bytes) {
  encode_any(type, values, bytes, [](double value) { return to_bfloat16(to_odd_float(value)); });
}

std::optional<std::int64_t> first_not_finite(StorageType type, std::span<const std::byte> bytes) {
  check_size(type, bytes.size() * 8 / static_cast<std::size_t>(row(type).bits), bytes.size());
  switch (type) {
    case StorageType::F64:
      return first_with_exponent<std::uint64_t>(bytes, 0x7FF0'0000'0000'0000u);
    case StorageType::F32:
      return first_with_exponent<std::uint32_t>(bytes, 0x7F80'0000u);
    case StorageType::F16:
      return first_with_exponent<std::uint16_t>(bytes, 0x7C00u);
    case StorageType::BF16:
      return first_with_exponent<std::uint16_t>(bytes, 0x7F80u);
    default:
      throw InternalError(cat("[checkpoint] ", row(type).name, " holds no weights to check"));
  }
}

}  // namespace octavo
