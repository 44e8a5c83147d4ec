// JSON read strictly: what a program of ours or of others wrote is checked, never trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace octavo {

/// The whole of `text` as one JSON value. `where` begins every message: "[spec] m/config.json". Throws UsageError, one
/// line with line, column and what was expected, for a syntax error, a key that appears twice in an object, invalid
/// UTF-8, a number beyond double, more than 64 levels of nesting, or text behind the value. Nothing else is thrown.
/// Include <nlohmann/json.hpp> to use the result.
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// The bytes of a regular file of at most `max_bytes`. Throws UsageError, which begins with `where`.
std::string read_text_file(const std::filesystem::path& file, const std::string& where,
                           std::int64_t max_bytes = 100'000'000);

/// Takes values out of a JSON object by key and type, and remembers which keys were asked for: finish() then refuses
/// the keys that nobody knew. null counts as absent. Every error is a UsageError of one line that begins with `where`
/// and names key and value. `value` must outlive this.
class JsonObject {
 public:
  /// Throws UsageError unless `value` is an object.
  JsonObject(const nlohmann::json& value, std::string where);

  // Absent: nullopt or nullptr. Of another type: UsageError. An integer is written without point or exponent and fits
  // 64 bits with sign.
  std::optional<std::int64_t> find_integer(const std::string& key);
  std::optional<double> find_number(const std::string& key);
  std::optional<bool> find_boolean(const std::string& key);
  std::optional<std::string> find_text(const std::string& key);
  const nlohmann::json* find(const std::string& key);

  // The same for keys that must be there.
  std::int64_t integer(const std::string& key);
  double number(const std::string& key);
  std::string text(const std::string& key);
  const nlohmann::json& value(const std::string& key);

  /// Known, and of no consequence.
  void ignore(const std::string& key) { known_.insert(key); }

  /// Throws UsageError for the first key that was neither asked for nor ignored, with the nearest known one.
  void finish() const;

  /// Throws UsageError: "<where>: <key> <problem>".
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

  const std::string& where() const { return where_; }

 private:
  const nlohmann::json* object_;
  std::string where_;
  std::set<std::string> known_;
};

/// `value` as JSON on one short line, for messages.
std::string show_json(const nlohmann::json& value);

}  // namespace octavo
