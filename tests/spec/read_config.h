// Configs as JSON, read as files would be.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// `config` with other values, or more.
inline nlohmann::json with(nlohmann::json config, const nlohmann::json& changes) {
  for (const auto& item : changes.items()) config[item.key()] = item.value();
  return config;
}

inline ModelSpec read(const nlohmann::json& config) {
  return parse_model_spec(config.dump(), "c.json");
}

/// The message must be one line that begins with the file, and holds every part.
inline void check_refused(const nlohmann::json& config, const std::vector<std::string>& parts) {
  CAPTURE(config.dump());
  std::string message;
  try {
    read(config);
  } catch (const UsageError& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.starts_with("[spec] c.json:"));
  CHECK(message.find('\n') == message.npos);
  for (const std::string& part : parts) CHECK(message.find(part) != message.npos);
}

}  // namespace octavo
