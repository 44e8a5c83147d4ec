#include "dataset/token_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

static_assert(std::endian::native == std::endian::little, "token files are mapped, not converted");

std::int64_t id_bytes(IdType type) {
  switch (type) {
    case IdType::U8:
      return 1;
    case IdType::U16:
      return 2;
    case IdType::U32:
    case IdType::I32:
      return 4;
    case IdType::I64:
      return 8;
  }
  throw InternalError("[dataset] id_bytes of an unknown type");
}

namespace {

constexpr std::string_view kMagic = "OCTVTOK1";
constexpr std::int64_t kHeaderBytes = 24;

template <class T>
T value_at(std::span<const std::byte> file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

bool starts_with(std::span<const std::byte> file, std::string_view text) {
  return file.size() >= text.size() && std::memcmp(file.data(), text.data(), text.size()) == 0;
}

// The ids must end exactly where the file ends: what is missing or left over means that something else was written.
void check_size(std::span<const std::byte> file, const TokenLayout& layout, const std::string& name) {
  const auto size = static_cast<std::int64_t>(file.size());
  const std::int64_t room = (size - layout.offset) / id_bytes(layout.type);
  const bool fits = layout.num_tokens <= room;
  if (fits && layout.offset + layout.num_tokens * id_bytes(layout.type) == size) return;
  throw UsageError(cat("[dataset] ", name, fits ? " is longer than" : " is truncated:", " its header says: ",
                       layout.num_tokens, " ids of ", id_bytes(layout.type), " bytes from byte ", layout.offset,
                       ", but the file has ", size, " bytes; write it again"));
}

// Reads the header of a .npy file: a Python dictionary with three known keys, as numpy.lib.format defines it.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& name) : text_(text), name_(name) { parse(); }

  const std::string& descr() const { return descr_; }
  bool fortran_order() const { return fortran_order_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }

 private:
  [[noreturn]] void fail() const {
    throw UsageError(cat("[dataset] ", name_, ": the .npy header does not read {'descr': .., 'fortran_order': ..,",
                         " 'shape': ..} at character ", at_, "; write the file with numpy.save"));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail();
  }
  std::string quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail();
    const std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  std::int64_t number() {
    skip_spaces();
    std::int64_t value = 0;
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (value > (std::numeric_limits<std::int64_t>::max() - 9) / 10) fail();
      value = value * 10 + (text_[at_++] - '0');
    }
    if (at_ == begin) fail();
    return value;
  }
  void parse() {
    int seen_descr = 0, seen_order = 0, seen_shape = 0;
    expect("{");
    while (!take("}")) {
      const std::string key = quoted();
      expect(":");
      if (key == "descr") {
        descr_ = quoted();
        ++seen_descr;
      } else if (key == "fortran_order") {
        fortran_order_ = take("True");
        if (!fortran_order_) expect("False");
        ++seen_order;
      } else if (key == "shape") {
        parse_shape();
        ++seen_shape;
      } else {
        fail();
      }
      if (take(",")) continue;
      expect("}");
      break;
    }
    skip_spaces();
    if (at_ != text_.size() || seen_descr != 1 || seen_order != 1 || seen_shape != 1) fail();
  }
  void parse_shape() {
    expect("(");
    while (!take(")")) {
      shape_.push_back(number());
      if (take(",")) continue;
      expect(")");
      break;
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::string descr_;
  bool fortran_order_ = false;
  std::vector<std::int64_t> shape_;
};

IdType npy_type(const std::string& descr, const std::string& name) {
  if (descr == "<u2") return IdType::U16;
  if (descr == "<u4") return IdType::U32;
  if (descr == "<i4") return IdType::I32;
  if (descr == "<i8") return IdType::I64;
  throw UsageError(cat("[dataset] ", name, ": the array has dtype '", descr,
                       "'; ids must be '<u2', '<u4', '<i4' or '<i8' (convert with numpy's astype)"));
}

}  // namespace

TokenLayout parse_token_file(std::span<const std::byte> file, const std::string& name) {
  if (!starts_with(file, kMagic)) {
    throw UsageError(cat("[dataset] ", name, " is no token file (it does not begin with ", kMagic,
                         "); make one with tools/tokenize.py, or give a text file another ending"));
  }
  if (file.size() < kHeaderBytes) {
    throw UsageError(cat("[dataset] ", name, " is truncated: a token file's header has ", kHeaderBytes,
                         " bytes, this file ", file.size(), "; write it again"));
  }
  const auto width = value_at<std::uint32_t>(file, 8);
  const auto vocab_size = value_at<std::uint32_t>(file, 12);
  const auto num_tokens = value_at<std::uint64_t>(file, 16);
  if (width != 2 && width != 4) {
    throw UsageError(cat("[dataset] ", name, ": the header gives an id ", width, " bytes; it must be 2 or 4"));
  }
  if (vocab_size == 0)
    throw UsageError(cat("[dataset] ", name, ": the header gives a vocabulary of 0; write it again"));
  if (num_tokens == 0) throw UsageError(cat("[dataset] ", name, " holds no tokens; tokenize a text that is not empty"));
  // A count beyond int64 cannot fit any file; clamped, the check of the size reports it.
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const TokenLayout layout{.type = width == 2 ? IdType::U16 : IdType::U32,
                           .offset = kHeaderBytes,
                           .num_tokens = static_cast<std::int64_t>(std::min(num_tokens, kMax)),
                           .vocab_size = vocab_size};
  check_size(file, layout, name);
  return layout;
}

TokenLayout parse_npy(std::span<const std::byte> file, const std::string& name) {
  if (!starts_with(file, "\x93NUMPY")) {
    throw UsageError(cat("[dataset] ", name, " is no NumPy array file (it does not begin with \\x93NUMPY); ",
                         "write it with numpy.save, or give a text file another ending"));
  }
  const auto truncated = [&] {
    return UsageError(
        cat("[dataset] ", name, " is truncated: ", file.size(), " bytes do not hold its .npy header; write it again"));
  };
  if (file.size() < 10) throw truncated();
  const int major = std::to_integer<int>(file[6]), minor = std::to_integer<int>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw UsageError(cat("[dataset] ", name, ": .npy format version ", major, ".", minor,
                         "; versions 1.0, 2.0 and 3.0 are read (write it with numpy.save)"));
  }
  std::size_t begin = 10;
  std::size_t length = value_at<std::uint16_t>(file, 8);
  if (major > 1) {
    if (file.size() < 12) throw truncated();
    begin = 12;
    length = value_at<std::uint32_t>(file, 8);
  }
  if (file.size() - begin < length) throw truncated();
  const NpyHeader header({reinterpret_cast<const char*>(file.data()) + begin, length}, name);
  const IdType type = npy_type(header.descr(), name);
  if (header.shape().size() != 1 || header.fortran_order()) {
    throw UsageError(cat("[dataset] ", name, ": the array has ", header.shape().size(), " dimensions",
                         header.fortran_order() ? " in Fortran order" : "",
                         "; ids must be one dimension in C order (use numpy's ravel)"));
  }
  if (header.shape()[0] == 0) throw UsageError(cat("[dataset] ", name, " holds no tokens; save an array with ids"));
  const TokenLayout layout{.type = type,
                           .offset = static_cast<std::int64_t>(begin + length),
                           .num_tokens = header.shape()[0],
                           .vocab_size = std::nullopt};
  check_size(file, layout, name);
  return layout;
}

}  // namespace octavo
