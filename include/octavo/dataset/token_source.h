// A file of token ids, mapped into memory and read in spans. Three kinds of file, told apart by the name's end:
//
//   .bin    octavo's token file, as tools/tokenize.py writes it; all numbers little-endian:
//             offset  0   8 bytes   "OCTVTOK1"
//             offset  8   uint32    bytes of one id: 2 (uint16) or 4 (uint32)
//             offset 12   uint32    vocabulary size V, >= 1; every id is below it
//             offset 16   uint64    number of ids N, >= 1
//             offset 24   N ids; the file ends with the last one
//   .npy    NumPy array, format versions 1 to 3: one dimension, C order, <u2 <u4 <i4 or <i8. It names no vocabulary,
//           so the file is read once when opened: V is the largest id + 1.
//   others  text: every byte is a token, V is 256.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace octavo {

class MappedFile;   // dataset/mapped_file.h
enum class IdType;  // dataset/token_format.h

/// Move-only. Reading is thread-safe: ranks that are threads share one source. The file must not shrink while it is
/// open (the kernel ends a process that reads past the end of a mapped file).
class TokenSource {
 public:
  /// Throws UsageError if `file` is missing, no regular file, unreadable, empty, truncated or longer than its header
  /// says, of another format than its name promises, or (.npy) holds a negative id or one above 2^31 - 1.
  explicit TokenSource(const std::filesystem::path& file);
  TokenSource(TokenSource&&) noexcept;
  TokenSource& operator=(TokenSource&&) noexcept;
  ~TokenSource();

  std::int64_t size() const { return size_; }              // tokens, >= 1
  std::int64_t vocab_size() const { return vocab_size_; }  // ids are in [0, vocab_size())
  const std::string& name() const { return name_; }        // the path as given, for messages

  /// out[i] = token begin + i. Throws UsageError if a .bin file holds an id at or above its vocabulary size,
  /// InternalError if the span leaves the file.
  void read(std::int64_t begin, std::span<std::int64_t> out) const;

 private:
  std::string name_;
  std::unique_ptr<MappedFile> file_;
  IdType type_;
  std::int64_t data_offset_ = 0;  // bytes from the start of the file to the first id
  std::int64_t size_ = 0;
  std::int64_t vocab_size_ = 0;
};

}  // namespace octavo
