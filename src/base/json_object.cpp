#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

namespace octavo {

JsonObject::JsonObject(const nlohmann::json& value, std::string where) : object_(&value), where_(std::move(where)) {
  if (!value.is_object()) {
    throw UsageError(cat(where_, ": holds ", show_json(value), ", of JSON type ", value.type_name(),
                         "; it must be an object in braces"));
  }
}

const nlohmann::json* JsonObject::find(const std::string& key) {
  known_.insert(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> JsonObject::find_integer(const std::string& key) {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer()) fail(key, cat("is ", show_json(*found), "; it must be an integer"));
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    fail(key, cat("is ", show_json(*found), "; it must fit a 64-bit integer"));
  }
  return found->get<std::int64_t>();
}

std::optional<double> JsonObject::find_number(const std::string& key) {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) fail(key, cat("is ", show_json(*found), "; it must be a number"));
  return found->get<double>();
}

std::optional<bool> JsonObject::find_boolean(const std::string& key) {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) fail(key, cat("is ", show_json(*found), "; it must be true or false"));
  return found->get<bool>();
}

std::optional<std::string> JsonObject::find_text(const std::string& key) {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) fail(key, cat("is ", show_json(*found), "; it must be a text in quotes"));
  return found->get<std::string>();
}

std::int64_t JsonObject::integer(const std::string& key) {
  value(key);
  return *find_integer(key);
}

double JsonObject::number(const std::string& key) {
  value(key);
  return *find_number(key);
}

std::string JsonObject::text(const std::string& key) {
  value(key);
  return *find_text(key);
}

const nlohmann::json& JsonObject::value(const std::string& key) {
  const nlohmann::json* found = find(key);
  if (found == nullptr) fail(key, "is missing; add it");
  return *found;
}

void JsonObject::finish() const {
  for (const auto& item : object_->items()) {
    if (known_.contains(item.key())) continue;
    const std::string close = nearest(item.key(), std::vector<std::string>(known_.begin(), known_.end()));
    throw UsageError(cat(where_, ": unknown key ", in_quotes(item.key()), " = ", show_json(item.value()), "; ",
                         close.empty() ? "remove it" : cat("the nearest known key is ", close)));
  }
}

void JsonObject::fail(const std::string& key, const std::string& problem) const {
  throw UsageError(cat(where_, ": ", key, " ", problem));
}

}  // namespace octavo
