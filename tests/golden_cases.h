// The reference cases of tests/data/golden: identities, measurements and catalogue values with their tolerance.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

namespace octavo {

struct GoldenCase {
  std::string id;
  std::string kind;  // "identity", "measurement", "catalogue", ...
  double tolerance;  // relative
  nlohmann::json input;
  nlohmann::json expect;
};

/// The cases of a golden file, for example "hardware", whose id begins with `prefix`: at least one.
inline std::vector<GoldenCase> golden_cases(const std::string& dataset, const std::string& prefix = "") {
  const std::string file = cat("tests/data/golden/", dataset, ".json");
  const nlohmann::json json = parse_json(read_text_file(file, file), file);
  std::vector<GoldenCase> found;
  for (const nlohmann::json& one : json.at("cases")) {
    const std::string id = one.at("id");
    if (!id.starts_with(prefix)) continue;
    found.push_back({id, one.at("kind"), one.at("tolerance_rel"), one.at("input"), one.at("expect")});
  }
  internal_check(!found.empty(), cat(file, " has no case ", prefix, "*"));
  return found;
}

/// |actual - expected| <= tolerance * |expected|, and no more than rounding where the file gives 12 digits.
inline bool agrees(double actual, double expected, double tolerance) {
  return std::abs(actual - expected) <= tolerance * std::abs(expected) + 1e-12;
}

}  // namespace octavo
