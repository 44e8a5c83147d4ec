#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/core/run_core.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

using namespace octavo;
using namespace octavo::cli;
using nlohmann::json;
using Outcome = testing::Captured;

namespace {

Outcome compare(std::vector<std::string> arguments, const std::string& config = "llama-3-8b") {
  return testing::run_core("compare", config, std::move(arguments));
}

json compare_json(std::vector<std::string> arguments, const std::string& config = "llama-3-8b") {
  arguments.emplace_back("--json");
  const Outcome outcome = compare(std::move(arguments), config);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// A folder of its own, removed at the end.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / cat("octavo-compare-", ::getpid())) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

/// Every element is closed in order, and no sign stands where XML has none: enough for a file without comments.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = xml.find("?>");
  while ((at = xml.find('<', at)) != std::string::npos) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos || xml.find('<', at + 1) < end) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.front() == '/') {
      if (open.empty() || open.back() != name.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() && xml.find("& ") == std::string::npos;
}

}  // namespace

TEST_CASE("compare prints one layer in closed form and one step for every strategy") {
  const Outcome outcome = compare({"--sequence", "4K..64K"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  for (const char* words :
       {"One layer in closed form", "Sent by a rank, elements", "Held by a rank", "Fold sends no more than others",
        "peak memory of a rank", "Headroom", "Step time", "The fastest that fits", "fold=8:weights",
        "sequence=2:gather tensor=4", "a batch of 1 sequence over 8 ranks"}) {
    CAPTURE(words);
    CHECK(says(outcome.out, words));
  }
}

TEST_CASE("the paper's crossover is printed for the paper's model") {
  const json layer = compare_json({"--sequence", "16K,32K"}, "tsp-reference-7b")["layer"];
  CHECK(layer["crossover"]["tensor"]["forward_tokens"] == 8 * 4096);
  CHECK(layer["crossover"]["tensor"]["training_tokens"] == 24 * 4096);
  CHECK(layer["crossover"]["tensor_sequence"][0]["forward_tokens"].is_null());
  const auto forward = [&](const char* strategy) {
    for (const json& each : layer["lengths"][1]["strategies"]) {
      if (each["strategy"] == strategy) return each["forward_elements"].get<double>();
    }
    return 0.0;
  };
  CHECK(forward("fold") == forward("tensor"));
  CHECK(forward("fold") > 0);
}

TEST_CASE("the JSON of a comparison has memory and headroom that add up to the limit") {
  const json out = compare_json({"--sequence", "8K..32K", "--batch", "8"});
  REQUIRE(out["steps"].size() == 3);
  for (const json& row : out["steps"]) {
    CHECK(row["layouts"].size() == 15);
    for (const json& each : row["layouts"]) {
      CAPTURE(each["layout"].get<std::string>());
      CHECK(!each.contains("broken"));
      const auto peak = each["peak_bytes"].get<std::int64_t>(), left = each["headroom_bytes"].get<std::int64_t>();
      CHECK(peak + left == out["request"]["memory_limit_bytes"].get<std::int64_t>());
      CHECK(each["fits"] == (left >= 0));
    }
  }
}

TEST_CASE("a layout that refuses a model has a reason and the others have numbers") {
  const Outcome outcome = compare({"--sequence", "32K", "--stash", "recompute"}, "qwen3.5-27b");
  CHECK(outcome.code == 0);
  CHECK(says(outcome.out, "sequence=8:ulysses: ulysses with sequence=8 tensor=1 does not divide kv_heads"));
  CHECK(says(outcome.out, "tensor=8:scatter:replicate"));
  CHECK(says(outcome.out, "fold=8:activations"));
  CHECK(says(compare({"--sequence", "8K"}, "mixtral-8x7b").out, "left out; it covers softmax attention without"));
}

TEST_CASE("more memory is taken by longer sequences under every strategy") {
  const json out = compare_json({"--sequence", "4K..256K"});
  for (std::size_t layout = 1; layout < 15; ++layout) {
    double last = 0;
    for (const json& row : out["steps"]) {
      const double peak = row["layouts"][layout]["peak_bytes"];
      CHECK(peak >= last);
      last = peak;
    }
  }
}

TEST_CASE("the plot is well-formed and has axes with units and every layout and the limit") {
  const Folder folder;
  const std::string file = folder.file("out.svg");
  CHECK(compare({"--sequence", "4K..256K", "--plot", file}).code == 0);
  const std::string svg = read_text_file(file, "[test]");
  CHECK(is_well_formed(svg));
  for (const char* words : {"<svg xmlns", "tokens of a sequence", "GB", "step time, s", "headroom, GB", "may be used",
                            "fold=8:weights", "tensor=8:scatter", "data=8:zero3 (refused)", ">256K<"}) {
    CAPTURE(words);
    CHECK(says(svg, words));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  // One length, and a model that fits nowhere.
  CHECK(compare({"--sequence", "8K", "--plot", file}).code == 0);
  CHECK(is_well_formed(read_text_file(file, "[test]")));
  CHECK(compare({"--sequence", "8K", "--plot", file}, "llama-3.1-405b").code == 0);
  CHECK(says(read_text_file(file, "[test]"), "Nothing fits"));
}

TEST_CASE("a plot that cannot be written is one line and leaves nothing") {
  const Folder folder;
  const Outcome nowhere = compare({"--sequence", "8K", "--plot", folder.file("none/out.svg")});
  CHECK(nowhere.code == 2);
  CHECK(nowhere.out.empty());
  CHECK(says(nowhere.err, "--plot"));
  CHECK(says(nowhere.err, "cannot be written"));
  std::filesystem::create_directories(folder.path / "taken");
  CHECK(compare({"--sequence", "8K", "--plot", folder.file("taken")}).code == 2);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("bad options of compare are one line that says what to do") {
  for (const auto& [arguments, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "needs --sequence"},
           {{"--sequence", "x"}, "no number of tokens"},
           {{"--sequence", "8K..4K"}, "--sequence \"8K..4K\": 4096 is below 8192"},
           {{"--sequence", "1..1M"}, "at most 16"},
           {{"--sequence", "8K", "--degree", "1"}, "--degree 1"},
           {{"--sequence", "8K", "--degree", "16"}, "has 8 accelerators"},
           {{"--sequence", "8K", "--batch", "0"}, "--batch 0"},
           {{"--sequence", "8K", "--stash", "kepe"}, "keep"},
           {{"--sequence", "8K", "--cluster", "H10x8"}, "H10"},
           {{"--sequence", "8K", "--degre", "4"}, "--degree"}}) {
    CAPTURE(words);
    const Outcome outcome = compare(arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(says(outcome.err, words));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}
