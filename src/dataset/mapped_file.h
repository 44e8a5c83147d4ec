// A regular file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace octavo {

/// Not copyable; the bytes live as long as this.
class MappedFile {
 public:
  /// Throws UsageError if `file` is missing, no regular file, unreadable or empty.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace octavo
