// Every malformed model folder gets its verdict from the program itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/run_captured.h"

using octavo::testing::run_captured;

TEST_CASE("octavo layout refuses every bad folder in one line that names the file, and accepts the good ones") {
  const std::filesystem::path root = "tests/data/bad";
  const auto expected = nlohmann::json::parse(std::ifstream(root / "expected.json"));
  int built = 0;
  for (const auto& [name, verdict] : expected.items()) {
    CAPTURE(name);
    const auto result = run_captured({"layout", (root / name).string()});
    const auto config = nlohmann::json::parse(std::ifstream(root / name / "config.json"), nullptr, false);
    const std::string type = config.is_object() ? config.value("model_type", "") : "";
    const bool is_built = type.empty() || type == "llama" || type == "qwen3";
    CAPTURE(result.err);
    if (is_built && verdict["verdict"] == "accept") {
      CHECK(result.code == 0);
      continue;
    }
    CHECK(result.code == 2);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.out.empty());
    if (!is_built) {
      CHECK(result.err.find(type) != std::string::npos);
      continue;
    }
    ++built;
    const std::string where = verdict["where"];
    CHECK(result.err.find(where == "." ? name : where) != std::string::npos);
  }
  CHECK(built >= 50);
}
