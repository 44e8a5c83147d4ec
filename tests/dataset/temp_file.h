// Files for tests, removed at the end of the scope.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

class TempFile {
 public:
  TempFile(std::string_view content, const std::string& ending) {
    std::string folder = (std::filesystem::temp_directory_path() / "octavo-dataset-XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
    path_ = folder_ / ("tokens" + ending);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() { std::filesystem::remove_all(folder_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

/// The bytes of numbers, little-endian.
template <class... T>
std::string bytes_of(T... values) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&values), sizeof(T)), ...);
  return out;
}

template <class Id>
std::string ids_as(const std::vector<std::int64_t>& ids) {
  std::string out;
  for (const std::int64_t id : ids) out += bytes_of(static_cast<Id>(id));
  return out;
}

/// A token file as octavo/dataset/token_source.h describes it.
template <class Id>
std::string token_file(std::uint32_t vocab_size, const std::vector<std::int64_t>& ids) {
  return "OCTVTOK1" + bytes_of(std::uint32_t{sizeof(Id)}, vocab_size, std::uint64_t{ids.size()}) + ids_as<Id>(ids);
}

/// A .npy file with this dictionary, padded as NumPy pads it.
inline std::string npy_file(int major, std::string dictionary, std::string_view data) {
  const std::size_t fixed = major == 1 ? 10 : 12;
  while ((fixed + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string out = "\x93NUMPY";
  out += bytes_of(static_cast<std::uint8_t>(major), std::uint8_t{0});
  out += major == 1 ? bytes_of(static_cast<std::uint16_t>(dictionary.size()))
                    : bytes_of(static_cast<std::uint32_t>(dictionary.size()));
  out += dictionary;
  out += data;
  return out;
}

}  // namespace octavo
