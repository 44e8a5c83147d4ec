// The element types of safetensors files, and values on their way between a file's type and ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace octavo {

// clang-format off
enum class StorageType {
  F64, F32, F16, BF16,                              // weights
  I64, I32, I16, I8, U64, U32, U16, U8, Bool, C64,  // known, but no weights
  F8E5M2, F8E4M3, F8E8M0, F6E2M3, F6E3M2, F4,
};
// clang-format on

/// "F32", "BF16", ... as a safetensors header writes it.
std::string_view storage_type_name(StorageType type);

/// The type with that name; nullopt if there is none.
std::optional<StorageType> storage_type_from_name(std::string_view name);

/// Bits of one element (4 and 6 exist).
int storage_bits(StorageType type);

/// F64, F32, F16 or BF16: what a weight may be stored in.
bool is_weight_type(StorageType type);

/// Reads out.size() elements of weight type `type` from `bytes` (exactly as many as they take; any alignment).
/// F64 to float rounds to nearest; all else is exact. Throws InternalError for another type or size.
void decode(StorageType type, std::span<const std::byte> bytes, std::span<float> out);
void decode(StorageType type, std::span<const std::byte> bytes, std::span<double> out);

/// Writes `values` as weight type F64, F32 or BF16 to `bytes` (exactly as many as they take), rounding to nearest even;
/// NaN stays NaN. Throws InternalError for another type or size.
void encode(StorageType type, std::span<const float> values, std::span<std::byte> bytes);
void encode(StorageType type, std::span<const double> values, std::span<std::byte> bytes);

/// Index of the first element of `bytes` that is NaN or infinite; nullopt if all are finite. Works on bits, at memory
/// speed. Throws InternalError if `type` is no weight type or `bytes` end inside an element.
std::optional<std::int64_t> first_not_finite(StorageType type, std::span<const std::byte> bytes);

}  // namespace octavo
