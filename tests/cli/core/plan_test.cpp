#include <doctest/doctest.h>
#include <unistd.h>

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

Outcome plan(std::vector<std::string> arguments, const std::string& config = "llama-3-8b") {
  return testing::run_core("plan", config, std::move(arguments));
}

const std::vector<std::string> kSmall = {"--cluster", "H100x8", "--sequence", "8K", "--global-batch", "512K"};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.begin(), kSmall.begin(), kSmall.end());
  return more;
}

bool says(const Outcome& outcome, const std::string& words) {
  return outcome.err.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("plan prints the best layouts and why the others are not among them") {
  const Outcome outcome = plan(with({"--top", "3", "--lengths", "4K..32K"}));
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  for (const char* words :
       {"MFU", "headroom", "The first in full", "accelerator-hours per billion tokens", "Why not the others",
        "The fastest of each strategy", "How far each strategy reaches", "What the first plan's step hangs on",
        "If other shares of its communication were hidden", "The winner by length", "docs/validation.md"}) {
    CAPTURE(words);
    CHECK(outcome.out.find(words) != std::string::npos);
  }
}

TEST_CASE("the JSON of a plan has every number with its unit in the key") {
  const Outcome outcome = plan(with({"--json"}));
  REQUIRE(outcome.code == 0);
  const json out = json::parse(outcome.out);
  CHECK(out["best"].size() == 10);
  const json& best = out["best"][0];
  CHECK(best["fits"] == true);
  CHECK(best["memory"]["peak_bytes"].get<double>() + best["memory"]["headroom_bytes"].get<double>() ==
        out["request"]["memory_limit_bytes"].get<double>());
  double sum = 0;
  for (const auto& part : best["memory"]["by_part_bytes"].items()) sum += part.value().get<double>();
  CHECK(sum == best["memory"]["peak_bytes"].get<double>());
  double seconds = 0;
  for (const auto& part : best["time"].items()) {
    if (part.key() != "step_s") seconds += part.value().get<double>();
  }
  CHECK(seconds == doctest::Approx(best["time"]["step_s"].get<double>()));
  CHECK(out["ruled_out"].size() == 9);
  CHECK(out["reach"].size() == 9);
}

TEST_CASE("a layout of one's own is priced in full, and fails with what would help") {
  const Outcome fits = plan(with({"--layout", "data=4:zero1 fold=2", "--stash", "recompute"}));
  CHECK(fits.code == 0);
  CHECK(fits.out.find("to spare") != std::string::npos);
  const Outcome large = plan(with({"--layout", "data=8"}));
  CHECK(large.code == 1);
  CHECK(large.out.find("It would fit with") != std::string::npos);
  CHECK(says(large, "on a rank, allowed are 73.6 GB"));
}

TEST_CASE("a layout of one's own stands beside the best, and beside the best by its axes") {
  const json out = json::parse(plan(with({"--layout", "data=4:zero1 fold=2", "--stash", "recompute", "--json"})).out);
  CHECK(out["best"]["time"]["step_s"] <= out["plan"]["time"]["step_s"]);
  const Outcome some = plan(with({"--layout", "data=4:zero1 fold=2", "--stash", "recompute", "--axes", "data,fold"}));
  CHECK(some.out.find("Beside the best by data, fold of") != std::string::npos);
  CHECK(some.out.find("\nsame axes ") != std::string::npos);
}

TEST_CASE("axes that are not named have degree 1 in every plan") {
  const json out = json::parse(plan(with({"--axes", "data,tensor", "--json"})).out);
  REQUIRE(!out["best"].empty());
  for (const json& each : out["best"]) {
    for (const char* axis : {"pipeline", "expert", "sequence", "fold"}) CHECK(each["axes"][axis]["degree"] == 1);
  }
}

TEST_CASE("the winner by number of nodes is printed for each, and constants that were given are said") {
  const Outcome outcome = plan(with({"--nodes", "1..4", "--set", "tensor_exposed=0.5"}));
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("The winner by number of nodes") != std::string::npos);
  CHECK(outcome.out.find("tensor_exposed = 0.5 (--set)") != std::string::npos);
  CHECK(outcome.out.find("no published step speaks for these times") != std::string::npos);
  const json out = json::parse(plan(with({"--nodes", "1,2,3", "--json"})).out);
  CHECK(out["sizes"].size() == 3);
  CHECK(out["sizes"][1]["nodes"] == 2);
}

TEST_CASE("accelerators that a layout leaves idle are said") {
  const Outcome outcome = plan(with({"--layout", "data=4:zero1 tensor=1", "--stash", "recompute"}));
  CHECK(outcome.out.find("idle    4 of 8 accelerators") != std::string::npos);
}

TEST_CASE("an emitted plan is one that the engine runs, with its options") {
  const auto file = std::filesystem::temp_directory_path() / cat("octavo-plan-", ::getpid(), ".toml");
  const Outcome outcome = plan(with({"--emit", file.string()}));
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("of those that octavo train runs today") != std::string::npos);
  const std::string text = read_text_file(file, "[test]");
  for (const char* key : {"model = \"", "layout = \"", "batch = 64\n", "seq-len = 8192\n", "micro-batch = ",
                          "stash = \"", "dtype = \"bf16\"", "--nnodes 1 --nproc-per-node 8", "runs on CPUs today"}) {
    CAPTURE(key);
    CHECK(text.find(key) != std::string::npos);
  }
  CHECK(!std::filesystem::exists(file.string() + ".part"));
  const Outcome refused =
      plan(with({"--layout", "data=1:zero3 sequence=8", "--stash", "recompute", "--emit", file.string()}));
  CHECK(refused.code == 2);
  CHECK(says(refused, "--runnable"));
  CHECK(read_text_file(file, "[test]") == text);
  std::filesystem::remove(file);
  CHECK(says(plan(with({"--runnable", "--emit", "no/such/folder/x.toml"})), "cannot be written"));
}

TEST_CASE("what nobody can mean is one clear line") {
  const auto refuses = [](const std::vector<std::string>& arguments, const std::string& words) {
    const Outcome outcome = plan(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(says(outcome, words));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.out.empty());
  };
  refuses({"--cluster", "H10O", "--sequence", "8K", "--global-batch", "4M"}, "H100");
  refuses({"--cluster", "H100x8", "--sequence", "-5", "--global-batch", "4M"}, "--sequence \"-5\"");
  refuses({"--cluster", "H100x8", "--sequence", "1e99", "--global-batch", "4M"}, "no number of tokens");
  refuses({"--cluster", "H100x8", "--sequence", "8000", "--global-batch", "4M"},
          "the nearest are 4,192,000 and 4,200,000");
  refuses({"--cluster", "H100x8", "--sequence", "8K"}, "plan needs --global-batch");
  refuses(with({"--memory-limit", "0"}), "--memory-limit");
  refuses(with({"--top", "0"}), "--top 0");
  refuses(with({"--micro-batch", "-1"}), "--micro-batch -1");
  refuses(with({"--sofware", "x"}), "did you mean --software?");
  refuses(with({"--software", "nanotrn"}), "did you mean nanotron?");
  refuses(with({"--layout", "tensr=8"}), "did you mean \"tensor\"?");
  refuses(with({"--layout", "tensor=16"}), "has 16 ranks");
  refuses(with({"--lengths", "8K..1K"}), "below");
  refuses(with({"--dtype", "fp64"}), "no peak");
  refuses(with({"--lengths", "5,7"}), "use lengths that divide it");
  refuses(with({"--memory-limit", "81GB"}), "80.0 GB");
  refuses(with({"--layout", "data=8", "--nodes", "1..4"}), "excludes");
  refuses(with({"--nodes", "0"}), "no whole number from 1");
  refuses(with({"--nodes", "4..2"}), "below");
  refuses(with({"--axes", "data,tensr"}), "the nearest is tensor");
  refuses(with({"--axes", "data,"}), "is no axis");
  refuses(with({"--zero", "zero2"}), "no ZeRO stage");
  refuses(with({"--schedules", "interleved"}), "the nearest is interleaved");
  refuses(with({"--set", "nic_bits=1e11"}), "JSON file");
  refuses(with({"--set", "tensor_exposd=1"}), "the nearest is tensor_exposed");
  refuses(with({"--layout", ""}), "an empty value");
  refuses(with({"--layout", "expert=8"}), "without experts");
  refuses(with({"--layout", "data=8", "--micro-batch", "9"}), "of a rank's 8 sequences");
  refuses({"--cluster", "H100x8", "--sequence", "8K", "--global-batch", "8K", "--layout", "data=8:zero3"},
          "a batch of 1 sequence over 8 ranks");
}

TEST_CASE("an option that would be ignored is refused, and an error is one line whatever stands in it") {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--set", "tensor_exposed=0.3"},
                                                                                    {"--emit", "x.toml"},
                                                                                    {"--top", "3"},
                                                                                    {"--cluster", "H100x8"},
                                                                                    {"--constants"},
                                                                                    {"--nodes", "2"}}) {
    std::vector<std::string> arguments{"plan", "--validate", "tests/data/golden"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = testing::run_core(arguments);
    CAPTURE(more.front());
    CHECK(outcome.code == 2);
    CHECK(says(outcome, "excludes"));
  }
  CHECK(plan(with({"--constants", "--emit", "x.toml"})).code == 2);
  for (const char* option :
       {"--memory-limit", "--stash", "--dtype", "--layout", "--config", "--emit", "--micro-batch"}) {
    const Outcome outcome = plan(with({option, "no\n/\x1b[31m"}));
    CAPTURE(option);
    CHECK(outcome.code == 2);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.err.find('\x1b') == std::string::npos);
  }
  CHECK(says(plan(with({"--config", "/tmp"})), "is a folder"));
  CHECK(says(plan(with({"--micro-batch", "abc"})), "--micro-batch = abc: is no whole number"));
  CHECK(says(plan(with({"--set", "overlap=0.5,overlap=0.6"})), "given twice"));
  CHECK(says(plan(with({"--layout", " "})), "an empty value"));
  CHECK(says(plan({"--cluster", "CMakeLists.txt", "--sequence", "8K", "--global-batch", "512K"}), "end in .json"));
}

TEST_CASE("every constant is printed with unit and source, and what is assumed says so") {
  const json out = json::parse(plan(with({"--constants", "--json"})).out);
  CHECK(out["hardware"].size() > 20);
  CHECK(out["software"].size() == 19);
  for (const char* kind : {"hardware", "software"}) {
    for (const json& constant : out[kind]) {
      CAPTURE(constant["name"].get<std::string>());
      CHECK(!constant["unit"].get<std::string>().empty());
      CHECK(!constant["source"].get<std::string>().empty());
      CHECK(!constant["date"].get<std::string>().empty());
      if (constant["name"] == "memory_share") CHECK(constant["source"] == "assumed");
    }
  }
}

TEST_CASE("published figures of a folder are compared without a model") {
  const Outcome outcome = testing::run_core({"plan", "--validate", "tests/data/golden"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("Beyond a limit") != std::string::npos);
}
