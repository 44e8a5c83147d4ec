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
  int refused = 0;
  for (const auto& [name, verdict] : expected.items()) {
    CAPTURE(name);
    const auto result = run_captured({"layout", (root / name).string()});
    CAPTURE(result.err);
    if (verdict["verdict"] == "accept") {
      CHECK(result.code == 0);
      continue;
    }
    CHECK(result.code == 2);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.out.empty());
    ++refused;
    const std::string where = verdict["where"];
    CHECK(result.err.find(where == "." ? name : where) != std::string::npos);
  }
  CHECK(refused == 70);
}

TEST_CASE("a model that the engine does not run is refused in one line that says what is missing") {
  for (const char* command : {"train", "dryrun", "verify", "eval"}) {
    CAPTURE(command);
    std::vector<std::string> arguments = {command, "tests/data/bad/good-qwen35"};
    if (std::string(command) == "train" || std::string(command) == "eval") {
      arguments.insert(arguments.end(), {"--data", "data/kjv-valid.txt"});
    }
    const auto result = run_captured(arguments);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(result.err.find("qwen3_5_text does not run yet: not built are Gated DeltaNet") != std::string::npos);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
}
