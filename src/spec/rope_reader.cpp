#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "octavo/base/text.h"
#include "spec/config_reader.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 4> kNotBuilt = {"linear", "dynamic", "yarn", "longrope"};

RopeSpec::Llama3 read_llama3(ConfigReader& rope) {
  RopeSpec::Llama3 scaling = {.factor = rope.keys.number("factor"),
                              .low_freq_factor = rope.keys.number("low_freq_factor"),
                              .high_freq_factor = rope.keys.number("high_freq_factor"),
                              .original_max_positions = rope.size("original_max_position_embeddings")};
  if (!(scaling.factor >= 1)) rope.keys.fail("factor", cat("is ", scaling.factor, "; it must be at least 1"));
  if (!(scaling.low_freq_factor > 0)) {
    rope.keys.fail("low_freq_factor", cat("is ", scaling.low_freq_factor, "; it must be greater than 0"));
  }
  if (!(scaling.high_freq_factor > scaling.low_freq_factor)) {
    rope.keys.fail("high_freq_factor", cat("is ", scaling.high_freq_factor,
                                           "; it must be greater than low_freq_factor = ", scaling.low_freq_factor));
  }
  return scaling;
}

std::string read_rope_type(ConfigReader& rope) {
  const std::optional<std::string> new_name = rope.keys.find_text("rope_type");
  const std::optional<std::string> old_name = rope.keys.find_text("type");
  if (new_name && old_name && *new_name != *old_name) {
    rope.keys.fail("rope_type",
                   cat("is ", in_quotes(*new_name), " and type is ", in_quotes(*old_name), "; keep one of them"));
  }
  const std::string type = new_name.value_or(old_name.value_or("default"));
  if (type != "default" && type != "llama3") {
    const bool known = std::find(kNotBuilt.begin(), kNotBuilt.end(), type) != kNotBuilt.end();
    rope.keys.fail(
        new_name ? "rope_type" : "type",
        cat("is ", in_quotes(type), ", which is ", known ? "not built" : "unknown", "; default and llama3 are built"));
  }
  return type;
}

// One of the two objects that may describe the rotary embedding. theta, rotary_factor: absent if it does not say.
struct RopeObject {
  std::optional<double> theta, rotary_factor;
  std::optional<RopeSpec::Llama3> llama3;
};

// partial_rotary_factor, in (0, 1]; of 1 only where the type may not turn a part of the head.
std::optional<double> read_rotary_factor(ConfigReader& config, const RopeDefaults& defaults) {
  const char* key = "partial_rotary_factor";
  if (!defaults.may_be_partial) config.expect(key, 1, "a partial rotary embedding is not built here");
  if (config.keys.find(key) == nullptr) return std::nullopt;
  const double factor = config.positive_or(key, 1);
  if (factor > 1) config.keys.fail(key, cat("is ", factor, "; it must be at most 1"));
  return factor;
}

// R, from the part of the head that is turned.
std::int64_t rotary_width(const ConfigReader& config, std::int64_t head_dim, double factor) {
  const double width = static_cast<double>(head_dim) * factor;
  const auto whole = static_cast<std::int64_t>(width);
  if (static_cast<double>(whole) != width || whole % 2 != 0 || whole < 2) {
    config.keys.fail("partial_rotary_factor", cat("is ", factor, "; head_dim = ", head_dim, " times it is ", width,
                                                  ", which must be an even number, because pairs are turned"));
  }
  return whole == head_dim ? 0 : whole;
}

// Frequencies of the three positions of a token; for text, where all three are the same, only their number counts.
void check_sections(JsonObject& keys, std::int64_t num_pairs) {
  const nlohmann::json* sections = keys.find("mrope_section");
  keys.ignore("mrope_interleaved");
  if (sections == nullptr) return;
  std::int64_t sum = 0;
  bool valid = sections->is_array() && sections->size() == 3;
  for (std::size_t i = 0; valid && i < 3; ++i) {
    const nlohmann::json& section = (*sections)[i];
    valid = section.is_number_unsigned() && section.get<std::uint64_t>() <= static_cast<std::uint64_t>(num_pairs);
    if (valid) sum += section.get<std::int64_t>();
  }
  if (!valid || sum != num_pairs) {
    keys.fail("mrope_section", cat("is ", show_json(*sections), "; it must be three numbers whose sum is ", num_pairs,
                                   ", the pairs that the rotary embedding turns"));
  }
}

RopeObject read_rope_object(const nlohmann::json& object, const std::string& where, std::int64_t head_dim,
                            std::optional<double> outer_factor, const RopeDefaults& defaults) {
  ConfigReader rope(object, where);
  RopeObject result;
  if (rope.keys.find("rope_theta") != nullptr) result.theta = rope.positive_or("rope_theta", 0);
  result.rotary_factor = read_rotary_factor(rope, defaults);
  if (defaults.has_sections) {
    const double factor = result.rotary_factor.value_or(outer_factor.value_or(defaults.rotary_factor));
    const std::int64_t width = rotary_width(rope, head_dim, factor);
    check_sections(rope.keys, (width == 0 ? head_dim : width) / 2);
  }
  if (read_rope_type(rope) == "llama3") result.llama3 = read_llama3(rope);
  rope.keys.finish();
  return result;
}

bool same(const std::optional<RopeSpec::Llama3>& a, const std::optional<RopeSpec::Llama3>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->factor == b->factor && a->low_freq_factor == b->low_freq_factor &&
         a->high_freq_factor == b->high_freq_factor && a->original_max_positions == b->original_max_positions;
}

}  // namespace

RopeSpec read_rope(ConfigReader& config, std::int64_t head_dim, const RopeDefaults& defaults) {
  JsonObject& keys = config.keys;
  std::optional<double> factor = read_rotary_factor(config, defaults);
  std::optional<double> theta;
  if (keys.find("rope_theta") != nullptr) theta = config.positive_or("rope_theta", 0);
  std::optional<RopeObject> described;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* object = keys.find(key);
    if (object == nullptr) continue;
    const RopeObject read = read_rope_object(*object, cat(keys.where(), ": ", key), head_dim, factor, defaults);
    if (theta && read.theta && *theta != *read.theta) {
      keys.fail(key, cat("says rope_theta = ", *read.theta, ", another place ", *theta, "; keep one of them"));
    }
    if (factor && read.rotary_factor && *factor != *read.rotary_factor) {
      keys.fail(key, cat("says partial_rotary_factor = ", *read.rotary_factor, ", another place ", *factor,
                         "; keep one of them"));
    }
    if (described && !same(described->llama3, read.llama3)) {
      keys.fail(key, "disagrees with rope_scaling; keep one of them");
    }
    if (read.theta) theta = read.theta;
    if (read.rotary_factor) factor = read.rotary_factor;
    described = read;
  }
  RopeSpec rope;
  rope.theta = theta.value_or(defaults.theta);
  rope.width = rotary_width(config, head_dim, factor.value_or(defaults.rotary_factor));
  if (described) rope.llama3 = described->llama3;
  return rope;
}

}  // namespace octavo
