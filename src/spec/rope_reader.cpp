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

// One of the two objects that may describe the rotary embedding. theta: absent if it does not say.
struct RopeObject {
  std::optional<double> theta;
  std::optional<RopeSpec::Llama3> llama3;
};

RopeObject read_rope_object(const nlohmann::json& object, const std::string& where) {
  ConfigReader rope(object, where);
  RopeObject result;
  if (rope.keys.find("rope_theta") != nullptr) result.theta = rope.positive_or("rope_theta", 0);
  rope.expect("partial_rotary_factor", 1, "a partial rotary embedding is not built here");
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

RopeSpec read_rope(ConfigReader& config) {
  JsonObject& keys = config.keys;
  config.expect("partial_rotary_factor", 1, "a partial rotary embedding is not built here");
  std::optional<double> theta;
  if (keys.find("rope_theta") != nullptr) theta = config.positive_or("rope_theta", 0);
  std::optional<RopeObject> described;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* object = keys.find(key);
    if (object == nullptr) continue;
    const RopeObject read = read_rope_object(*object, cat(keys.where(), ": ", key));
    if (theta && read.theta && *theta != *read.theta) {
      keys.fail(key, cat("says rope_theta = ", *read.theta, ", another place ", *theta, "; keep one of them"));
    }
    if (described && !same(described->llama3, read.llama3)) {
      keys.fail(key, "disagrees with rope_scaling; keep one of them");
    }
    if (read.theta) theta = read.theta;
    described = read;
  }
  RopeSpec rope;
  if (theta) rope.theta = *theta;
  if (described) rope.llama3 = described->llama3;
  return rope;
}

}  // namespace octavo
