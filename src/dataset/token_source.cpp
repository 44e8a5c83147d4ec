#include "octavo/dataset/token_source.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "dataset/mapped_file.h"
#include "dataset/token_format.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();

// memcpy, because the ids of a .npy file need not lie on a multiple of their size.
template <class Id>
void copy_ids(const std::byte* from, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Id id;
    std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
    out[i] = static_cast<std::int64_t>(id);
  }
}

void copy_ids(IdType type, const std::byte* from, std::span<std::int64_t> out) {
  switch (type) {
    case IdType::U8:
      return copy_ids<std::uint8_t>(from, out);
    case IdType::U16:
      return copy_ids<std::uint16_t>(from, out);
    case IdType::U32:
      return copy_ids<std::uint32_t>(from, out);
    case IdType::I32:
      return copy_ids<std::int32_t>(from, out);
    case IdType::I64:
      return copy_ids<std::int64_t>(from, out);
  }
}

// 1 + the largest id of an array that names no vocabulary.
std::int64_t find_vocab_size(const std::byte* ids, const TokenLayout& layout, const std::string& name) {
  std::int64_t largest = 0;
  std::vector<std::int64_t> chunk;
  for (std::int64_t begin = 0; begin < layout.num_tokens; begin += std::ssize(chunk)) {
    chunk.resize(static_cast<std::size_t>(std::min<std::int64_t>(layout.num_tokens - begin, 1 << 14)));
    copy_ids(layout.type, ids + begin * id_bytes(layout.type), chunk);
    const auto [low, high] = std::minmax_element(chunk.begin(), chunk.end());
    for (const auto id : {low, high}) {
      if (*id >= 0 && *id <= kMaxId) continue;
      throw UsageError(cat("[dataset] ", name, ": id ", *id, " at place ", begin + (id - chunk.begin()),
                           " is outside 0 .. ", kMaxId, "; write token ids only, without padding marks"));
    }
    largest = std::max(largest, *high);
  }
  return largest + 1;
}

}  // namespace

TokenSource::TokenSource(const std::filesystem::path& file)
    : name_(file.string()), file_(std::make_unique<MappedFile>(file)) {
  const std::span<const std::byte> bytes = file_->bytes();
  TokenLayout layout{.type = IdType::U8, .offset = 0, .num_tokens = std::ssize(bytes), .vocab_size = 256};
  if (file.extension() == ".bin") layout = parse_token_file(bytes, name_);
  if (file.extension() == ".npy") layout = parse_npy(bytes, name_);
  type_ = layout.type;
  data_offset_ = layout.offset;
  size_ = layout.num_tokens;
  vocab_size_ = layout.vocab_size ? *layout.vocab_size : find_vocab_size(bytes.data() + layout.offset, layout, name_);
}

TokenSource::TokenSource(TokenSource&&) noexcept = default;
TokenSource& TokenSource::operator=(TokenSource&&) noexcept = default;
TokenSource::~TokenSource() = default;

void TokenSource::read(std::int64_t begin, std::span<std::int64_t> out) const {
  const std::int64_t count = std::ssize(out);
  if (begin < 0 || begin > size_ - count) {
    throw InternalError(
        cat("[dataset] ", name_, ": read of ", count, " tokens from ", begin, " leaves the ", size_, " in the file"));
  }
  copy_ids(type_, file_->bytes().data() + data_offset_ + begin * id_bytes(type_), out);
  const auto high = std::max_element(out.begin(), out.end());
  if (high == out.end() || *high < vocab_size_) return;
  throw UsageError(cat("[dataset] ", name_, ": id ", *high, " at place ", begin + (high - out.begin()),
                       " is not below the file's vocabulary size ", vocab_size_,
                       "; tokenize again with the tokenizer that the header was written for"));
}

}  // namespace octavo
