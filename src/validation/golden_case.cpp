#include "validation/golden_case.h"

#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

using nlohmann::json;

const json& cases_of(const json& file) {
  if (!file.is_object() || !file.contains("cases") || !file["cases"].is_array() || file["cases"].empty()) {
    throw UsageError(
        "[validation] a golden file has a list \"cases\" with at least one; those of tests/data/golden "
        "show the format");
  }
  return file["cases"];
}

std::int64_t count(const json& input, const char* key, std::int64_t most) {
  const auto found = input.find(key);
  if (found == input.end() || !found->is_number_integer() || *found < 1 || *found > most) {
    throw UsageError(cat("the case's ", key, " is no whole number from 1 to ", with_commas(most)));
  }
  return found->get<std::int64_t>();
}

double number_or_none(const json& input, const char* key) {
  return input.is_object() && input.contains(key) && input[key].is_number() ? input[key].get<double>() : 0;
}

std::string text_or_none(const json& input, const char* key) {
  return input.is_object() && input.contains(key) && input[key].is_string() ? input[key].get<std::string>() : "";
}

}  // namespace octavo
