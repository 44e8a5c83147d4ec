#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 56;  // 64 bits each stay below 2^63

std::vector<std::int64_t> read_integers(JsonObject& entry, const char* key) {
  const nlohmann::json& list = entry.value(key);
  if (!list.is_array()) entry.fail(key, cat("is ", show_json(list), "; it must be a list of integers"));
  std::vector<std::int64_t> integers;
  for (const nlohmann::json& value : list) {
    const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
    if (!value.is_number_integer() || too_large) {
      entry.fail(key, cat("holds ", show_json(value), "; it must hold 64-bit integers"));
    }
    integers.push_back(value.get<std::int64_t>());
  }
  return integers;
}

StoredTensor read_entry(const std::string& name, const nlohmann::json& value, Bytes data_bytes,
                        const std::string& where) {
  JsonObject entry(value, cat(where, ": ", in_quotes(name)));
  StoredTensor tensor;
  tensor.name = name;

  const std::string type_name = entry.text("dtype");
  const std::optional<StorageType> type = storage_type_from_name(type_name);
  if (!type) entry.fail("dtype", cat("is ", in_quotes(type_name), ", which is unknown; F32, BF16 and such are known"));
  tensor.type = *type;

  tensor.shape = read_integers(entry, "shape");
  const std::optional<std::int64_t> elements = count_elements(tensor.shape);
  if (!elements) {
    entry.fail("shape",
               cat("is ", show_json(value["shape"]), "; sizes must not be negative, nor their product exceed 2^56"));
  }

  const std::vector<std::int64_t> offsets = read_integers(entry, "data_offsets");
  const auto fail_offsets = [&](const std::string& rule) {
    entry.fail("data_offsets", cat("is ", show_json(value["data_offsets"]), "; ", rule));
  };
  if (offsets.size() != 2) fail_offsets("it must be two numbers, begin and end");
  std::tie(tensor.begin, tensor.end) = std::tuple(offsets[0], offsets[1]);
  if (tensor.begin < 0) fail_offsets("an offset must not be negative");
  if (tensor.end < tensor.begin) fail_offsets("the end must not lie before the begin");
  const std::int64_t bits = *elements * storage_bits(tensor.type);
  if (bits % 8 != 0 || tensor.end - tensor.begin != bits / 8) {
    fail_offsets(cat("that is ", tensor.end - tensor.begin, " bytes, but shape ", shape_text(tensor.shape), " of ",
                     type_name, " needs ", bits % 8 == 0 ? cat(bits / 8) : cat(bits, "/8")));
  }
  if (tensor.end > data_bytes) {
    fail_offsets(cat("it ends beyond the data, ", data_bytes, " bytes; the file is cut short or the offset is wrong"));
  }
  entry.finish();
  return tensor;
}

std::map<std::string, std::string> read_metadata(const nlohmann::json& value, const std::string& where) {
  JsonObject object(value, cat(where, ": __metadata__"));
  std::map<std::string, std::string> metadata;
  for (const auto& item : value.items()) metadata[item.key()] = *object.find_text(item.key());
  return metadata;
}

// The tensors, sorted by place, must cover the data without overlap, hole or rest.
void check_cover(const std::vector<StoredTensor>& tensors, Bytes data_bytes, const std::string& where) {
  Bytes covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin < covered) {
      throw UsageError(cat(where, ": ", in_quotes(tensor.name), " begins at byte ", tensor.begin,
                           ", inside the tensor before it, which ends at ", covered, "; tensors must not overlap"));
    }
    if (tensor.begin > covered) {
      throw UsageError(cat(where, ": ", tensor.begin - covered, " bytes before ", in_quotes(tensor.name),
                           " belong to no tensor; the data must have no holes"));
    }
    covered = tensor.end;
  }
  if (covered < data_bytes) {
    throw UsageError(cat(where, ": ", data_bytes - covered,
                         " bytes after the last tensor belong to no tensor; the file must end with its data"));
  }
}

}  // namespace

std::optional<std::int64_t> count_elements(const std::vector<std::int64_t>& shape) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; })) return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (elements > kMaxElements / size) return std::nullopt;
    elements *= size;
  }
  return elements;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return cat("[", join(sizes, ", "), "]");
}

SafetensorsHeader parse_safetensors_header(std::string_view text, Bytes data_bytes, const std::string& where) {
  if (text.empty() || text[0] != '{')
    throw UsageError(cat(where, ": the header must be a JSON object and begin with {"));
  const nlohmann::json json = parse_json(text, cat(where, ": header"));
  SafetensorsHeader header;
  for (const auto& item : json.items()) {
    if (item.key() == "__metadata__") {
      header.metadata = read_metadata(item.value(), where);
    } else {
      header.tensors.push_back(read_entry(item.key(), item.value(), data_bytes, where));
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_cover(header.tensors, data_bytes, where);
  return header;
}

}  // namespace octavo
