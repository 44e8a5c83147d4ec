#include "cli/report_json.h"

#include <string>

namespace octavo::cli {

using nlohmann::json;

json categories_json(const MemorySnapshot& memory) {
  json categories = json::object();
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    categories[std::string(memory_category_name(static_cast<MemoryCategory>(c)))] = memory.by_category[c];
  }
  return categories;
}

json traffic_json(const LedgerRow& row) {
  return {{"group", row.group},
          {"purpose", purpose_name(row.purpose)},
          {"kind", collective_name(row.kind)},
          {"count", row.count},
          {"logical_bytes", row.logical}};
}

}  // namespace octavo::cli
