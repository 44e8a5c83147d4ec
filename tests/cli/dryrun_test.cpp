// octavo dryrun: what it says, and how it fails. That its numbers are those of a real step is tested in tests/dryrun.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/run_captured.h"

using nlohmann::json;
using octavo::testing::Captured;
using octavo::testing::run_captured;

namespace {

constexpr const char* kModel = "data/demo-config.json";

Captured dryrun(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"dryrun", kModel});
  return run_captured(arguments);
}

}  // namespace

TEST_CASE("a dry run reports memory, FLOPs and traffic, and that the traffic is as predicted") {
  const Captured result = dryrun({"--layout", "data=3:zero1", "--batch", "4", "--seq-len", "64"});
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.code == 0);
  for (const char* part : {"3 ranks (data=3:zero1)", "rank 0: 2 sequences; no other rank is like it", "activations",
                           "executes ", "reduce_scatter", "all_gather", "every row is as predicted, to the byte",
                           "2 ranks do something else", "took "}) {
    CAPTURE(part);
    CHECK(result.out.find(part) != std::string::npos);
  }
}

TEST_CASE("one rank moves nothing, as predicted") {
  const Captured result = dryrun({"--seq-len", "32"});
  CHECK(result.code == 0);
  CHECK(result.out.find("moves nothing, as predicted") != std::string::npos);
}

TEST_CASE("any rank can be asked for, and one of each kind") {
  const auto ranks = [](const std::vector<std::string>& arguments) {
    const Captured result = dryrun(arguments);
    CAPTURE(result.err);
    CHECK(result.code == 0);
    return json::parse(result.out)["ranks"];
  };
  const json last = ranks({"--layout", "data=1024", "--batch", "1026", "--seq-len", "16", "--rank", "1023", "--json"});
  CHECK(last.size() == 1);
  CHECK(last[0]["rank"] == 1023);
  CHECK(last[0]["sequences"] == 1);
  CHECK(last[0]["alike"].size() == 1022);
  CHECK(last[0]["as_predicted"] == true);
  CHECK(last[0]["flops"]["matmul"] > 0);
  const json kinds = ranks({"--layout", "data=1024", "--batch", "1026", "--seq-len", "16", "--all-distinct", "--json"});
  CHECK(kinds.size() == 2);
  CHECK(kinds[0]["rank"] == 0);
  CHECK(kinds[1]["rank"] == 2);
  CHECK(kinds[0]["peak_bytes"]["total"] > kinds[1]["peak_bytes"]["total"]);
  CHECK(kinds[0]["state_bytes"] == kinds[1]["state_bytes"]);
}

TEST_CASE("a memory limit that is met ends with what is alive, exit code 1") {
  const Captured result = dryrun({"--memory-limit", "30MB", "--seq-len", "512"});
  CHECK(result.code == 1);
  CHECK(result.out.empty());
  CHECK(result.err.find("would exceed the limit of 30.0 MB per rank; alive: ") != std::string::npos);
  CHECK(dryrun({"--memory-limit", "30GB", "--seq-len", "512"}).code == 0);
}

TEST_CASE("what a dry run cannot be asked is one line, exit code 2") {
  const std::vector<std::vector<std::string>> wrong = {{"--rank", "2", "--layout", "data=2"},
                                                       {"--rank", "-1"},
                                                       {"--batch", "0"},
                                                       {"--seq-len", "-3"},
                                                       {"--micro-batch", "0"},
                                                       {"--stash", "some"},
                                                       {"--dtype", "fp8"},
                                                       {"--layout", "dat=2"},
                                                       {"--memory-limit", "lots"},
                                                       {"--rank", "0", "--all-distinct"},
                                                       {"--deadline", "3"},
                                                       {"--batch", "99999999999999"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const Captured result = dryrun(arguments);
    CAPTURE(arguments.front());
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
  CHECK(run_captured({"dryrun"}).code == 2);
  CHECK(run_captured({"dryrun", "nowhere.json"}).code == 2);
}
