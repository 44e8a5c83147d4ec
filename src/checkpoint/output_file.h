// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace octavo {

/// Writes beside `file` under a temporary name. Every function throws UsageError naming the file and the system's
/// reason. Destroyed before commit(), it leaves nothing behind.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& file);
  OutputFile(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  /// Syncs the data to disk, renames to the final name (replacing what was there) and syncs the folder.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path file_, temporary_;
  int descriptor_ = -1;
};

/// Syncs the entries of a folder to disk, so that a rename in it survives a crash.
void sync_folder(const std::filesystem::path& folder);

}  // namespace octavo
