// The JSON header of a safetensors file, parsed and checked without touching the data.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/checkpoint/safetensors.h"

namespace octavo {

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their data, which they cover from 0 to data_bytes
  std::map<std::string, std::string> metadata;
};

/// `text` is the header, `data_bytes` what follows it in the file. `where` begins every message. Throws UsageError.
SafetensorsHeader parse_safetensors_header(std::string_view text, Bytes data_bytes, const std::string& where);

/// Elements of `shape`; nullopt if a size is negative or the product exceeds 2^56.
std::optional<std::int64_t> count_elements(const std::vector<std::int64_t>& shape);

/// "[16, 8]".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace octavo
