// Reading and writing one safetensors file: 8 bytes of header length, a JSON header, the tensors' data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/checkpoint/storage_type.h"

namespace octavo {

/// One tensor of a file: row-major, without gaps.
struct StoredTensor {
  std::string name;
  StorageType type = StorageType::F32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  Bytes begin = 0, end = 0;         // of its data, counted from the end of the header

  std::int64_t num_elements() const;
};

/// A file opened for reading. The header is checked in full: whatever the bytes, no read goes outside the file. The
/// data is mapped, not copied, so the file must not be shortened while this lives.
class SafetensorsFile {
 public:
  /// Throws UsageError, one line that names file, tensor and fault, for a file that is not valid: a header that is cut,
  /// not JSON or names a tensor twice; an unknown dtype; a shape that is negative, overflows or does not fit its
  /// data_offsets; data that overlaps, has holes, or does not fill the file exactly.
  explicit SafetensorsFile(const std::filesystem::path& file);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  const std::filesystem::path& path() const { return path_; }
  std::span<const StoredTensor> tensors() const { return tensors_; }                // in the order of their data
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // the header's __metadata__

  /// The tensor called `name`; nullptr if there is none. Lives as long as this file.
  const StoredTensor* find(const std::string& name) const;

  /// The data of a tensor of this file, of any alignment. Valid as long as this file.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

  /// Elements [first, first + out.size()) of a tensor, converted. Throws InternalError for a name or a range that the
  /// file does not have, UsageError for a tensor that holds no floating point weights.
  void read_as_float(const std::string& name, std::int64_t first, std::span<float> out) const;
  void read_as_double(const std::string& name, std::int64_t first, std::span<double> out) const;

 private:
  class Mapping;
  template <class Value>
  void read(const std::string& name, std::int64_t first, std::span<Value> out) const;

  std::filesystem::path path_;
  std::unique_ptr<Mapping> mapping_;
  std::size_t data_begin_ = 0;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t> index_;  // name -> place in tensors_
  std::map<std::string, std::string> metadata_;
};

/// A file being written: declare all tensors, append their values in that order, commit. The file appears under its
/// name only in commit(), whole and on disk; a writer destroyed before leaves nothing behind.
class SafetensorsWriter {
 public:
  /// begin and end of `tensors` are ignored. Types: F64, F32, BF16; wider types first, so that all data is aligned.
  /// Throws UsageError if the file cannot be made, InternalError for a declaration that breaks these rules or repeats
  /// a name.
  SafetensorsWriter(const std::filesystem::path& file, std::vector<StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  /// The next elements of the current tensor, any number of them up to its end; converted to its type. Throws
  /// InternalError beyond the end of a tensor or of the last, UsageError if the disk is full.
  void append(std::span<const float> values);
  void append(std::span<const double> values);

  /// Syncs the file and gives it its name. Throws InternalError if elements are missing, UsageError if the disk
  /// refuses.
  void commit();

 private:
  template <class Value>
  void append_any(std::span<const Value> values);
  void skip_finished();

  std::vector<StoredTensor> tensors_;
  std::unique_ptr<class OutputFile> output_;
  std::vector<std::byte> buffer_;
  std::size_t current_ = 0;     // tensor that the next element belongs to
  std::int64_t num_given_ = 0;  // elements of it
};

}  // namespace octavo
