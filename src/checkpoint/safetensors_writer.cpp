#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "checkpoint/output_file.h"
#include "checkpoint/safetensors_header.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/checkpoint/safetensors.h"

namespace octavo {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;  // values are converted and written this much at a time

// Gives every tensor its place and returns the header: length, JSON, and spaces up to a multiple of 8.
std::string place_tensors(std::vector<StoredTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  Bytes offset = 0;
  std::set<std::string> names = {"__metadata__"};
  for (StoredTensor& tensor : tensors) {
    const bool written = is_weight_type(tensor.type) && tensor.type != StorageType::F16;
    internal_check(written, cat("[checkpoint] ", tensor.name, ": ", storage_type_name(tensor.type), " is not written"));
    internal_check(names.insert(tensor.name).second, cat("[checkpoint] ", tensor.name, " is declared twice"));
    const Bytes width = storage_bits(tensor.type) / 8;
    internal_check(offset % width == 0,
                   cat("[checkpoint] ", tensor.name, " would not be aligned; declare wider types first"));
    tensor.begin = offset;
    tensor.end = offset += tensor.num_elements() * width;
    header[tensor.name] = {{"dtype", storage_type_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string json = header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i) text[static_cast<std::size_t>(i)] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return text + json;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& file, std::vector<StoredTensor> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)), buffer_(kBufferBytes) {
  const std::string header = place_tensors(tensors_, metadata);
  output_ = std::make_unique<OutputFile>(file);
  output_->write(header);
  skip_finished();
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::append(std::span<const float> values) {
  append_any(values);
}
void SafetensorsWriter::append(std::span<const double> values) {
  append_any(values);
}

template <class Value>
void SafetensorsWriter::append_any(std::span<const Value> values) {
  if (values.empty()) return;
  internal_check(current_ < tensors_.size(), cat("[checkpoint] ", values.size(), " elements beyond the last tensor"));
  const StoredTensor& tensor = tensors_[current_];
  const std::int64_t missing = tensor.num_elements() - num_given_;
  internal_check(values.size() <= static_cast<std::size_t>(missing),
                 cat("[checkpoint] ", tensor.name, " needs ", missing, " more elements, not ", values.size()));
  num_given_ += static_cast<std::int64_t>(values.size());
  const auto width = static_cast<std::size_t>(storage_bits(tensor.type)) / 8;
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), buffer_.size() / width);
    const std::span<std::byte> bytes(buffer_.data(), count * width);
    encode(tensor.type, values.first(count), bytes);
    output_->write(bytes);
    values = values.subspan(count);
  }
  skip_finished();
}

void SafetensorsWriter::skip_finished() {
  while (current_ < tensors_.size() && num_given_ == tensors_[current_].num_elements()) {
    ++current_;
    num_given_ = 0;
  }
}

void SafetensorsWriter::commit() {
  internal_check(current_ == tensors_.size(), "[checkpoint] commit() before the last element was appended");
  output_->commit();
}

}  // namespace octavo
