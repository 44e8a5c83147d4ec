// The headers of token files: where the ids lie in a file and of which kind they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace octavo {

enum class IdType { U8, U16, U32, I32, I64 };  // all little-endian

std::int64_t id_bytes(IdType type);  // of one id: 1, 2, 4 or 8

struct TokenLayout {
  IdType type;
  std::int64_t offset;                     // bytes from the start of the file to the first id
  std::int64_t num_tokens;                 // >= 1; the ids end where the file ends
  std::optional<std::int64_t> vocab_size;  // absent: the format does not say (.npy)
};

/// The layout of octavo's token file (octavo/dataset/token_source.h). `name` is for messages.
/// Throws UsageError if the header is wrong or the size of the file is not what it says; so does parse_npy().
TokenLayout parse_token_file(std::span<const std::byte> file, const std::string& name);

/// The layout of a NumPy array file.
TokenLayout parse_npy(std::span<const std::byte> file, const std::string& name);

}  // namespace octavo
