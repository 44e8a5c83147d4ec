// What all readers of golden files read alike.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace octavo {

/// The file's "cases". Throws UsageError where they are no list, or an empty one: nothing would be compared.
const nlohmann::json& cases_of(const nlohmann::json& file);

/// input[key], a whole number from 1 to `most`. Throws UsageError for any other.
std::int64_t count(const nlohmann::json& input, const char* key, std::int64_t most = 1 << 24);

/// input[key]; 0 where it is no number.
double number_or_none(const nlohmann::json& input, const char* key);

/// input[key]; empty where it is no text.
std::string text_or_none(const nlohmann::json& input, const char* key);

}  // namespace octavo
