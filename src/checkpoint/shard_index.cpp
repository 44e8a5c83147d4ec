#include "checkpoint/shard_index.h"

#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

namespace octavo {

std::map<std::string, std::string> read_shard_index(const std::filesystem::path& index) {
  const std::string where = cat("[checkpoint] ", index.string());
  const nlohmann::json json = parse_json(read_text_file(index, where), where);
  JsonObject keys(json, where);
  keys.ignore("metadata");
  const nlohmann::json& weight_map = keys.value("weight_map");
  keys.finish();

  JsonObject files(weight_map, cat(where, ": weight_map"));
  std::map<std::string, std::string> result;
  for (const auto& item : weight_map.items()) {
    const std::string file = files.text(item.key());
    const bool plain = !file.empty() && file.find_first_of(std::string_view("/\\\0", 3)) == file.npos;
    if (!plain || file == "." || file == "..") {
      throw UsageError(cat(where, ": ", in_quotes(item.key()), " is said to be in ", in_quotes(file),
                           "; an index may name only files of its own folder"));
    }
    result.emplace(item.key(), file);
  }
  return result;
}

}  // namespace octavo
