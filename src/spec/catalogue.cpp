#include "spec/catalogue.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

struct Entry {
  std::string_view model_type;
  ModelReader reader;
};

constexpr std::array kBuilt = {
    Entry{"llama", read_llama},
    Entry{"qwen3", read_qwen3},
};

constexpr std::array<std::string_view, 10> kNotBuilt = {"mixtral",      "qwen3_moe",   "qwen3_next",       "qwen3_5",
                                                        "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen2",
                                                        "mistral",      "gemma3_text"};

}  // namespace

ModelReader find_model_reader(const std::string& model_type, const std::string& where) {
  std::vector<std::string> names;
  for (const Entry& entry : kBuilt) {
    if (entry.model_type == model_type) return entry.reader;
    names.emplace_back(entry.model_type);
  }
  const bool known = std::find(kNotBuilt.begin(), kNotBuilt.end(), model_type) != kNotBuilt.end();
  throw UsageError(cat(where, ": model_type ", in_quotes(model_type), known ? " is not built" : " is unknown",
                       "; the types that are built: ", join(names, ", ")));
}

}  // namespace octavo
