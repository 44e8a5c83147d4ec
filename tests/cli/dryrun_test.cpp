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

TEST_CASE("a dry run says which form the fold axis gives to which block, and what that sends") {
  const std::vector<std::string> arguments = {"--layout", "fold=4",         "--seq-len", "64",  "--micro-batch",
                                              "1",        "--all-distinct", "--backend", "gloo"};
  const Captured text = dryrun(arguments);
  CAPTURE(text.out);
  CAPTURE(text.err);
  CHECK(text.code == 0);
  // 256 vocabulary rows, 64 positions: every block is worth more than its tokens. But 4 does not divide 5 KV heads.
  CHECK(text.out.find("fold=4:auto at 64 positions: activations for embedding, MLP, head; weights for attention") !=
        std::string::npos);
  CHECK(text.out.find("busiest rank") == std::string::npos);
  const Captured by_activations = dryrun({"--layout", "fold=4:activations", "--seq-len", "64"});
  CHECK(by_activations.out.find("5 KV heads over fold=4 by activations: 2 on the busiest rank") != std::string::npos);
  std::vector<std::string> with_json = arguments;
  with_json.emplace_back("--json");
  const json report = json::parse(dryrun(with_json).out);
  CHECK(report["as_predicted"] == true);
  CHECK(report["backend"] == "gloo");
  CHECK(report["fold"]["positions"] == 64);
  CHECK(report["fold"]["blocks"].size() == 4);
  CHECK(report["fold"]["blocks"][2]["kind"] == "MLP");
  CHECK(report["fold"]["blocks"][2]["forward"] == "activations");
  // 2 A of 64 positions of 160 values, c = 3/4.
  CHECK(report["fold"]["blocks"][2]["sent_bytes"]["forward"]["activations"] == 2 * 64 * 160 * 4 * 3 / 4);
  CHECK(json::parse(dryrun({"--seq-len", "16", "--json"}).out)["fold"].is_null());
}

TEST_CASE("on threads a dry run counts weights as read in place, which other links do not") {
  const auto forward = [](const char* backend) {
    const Captured result =
        dryrun({"--layout", "fold=2", "--seq-len", "64", "--stash", "recompute", "--backend", backend, "--json"});
    CAPTURE(result.err);
    return json::parse(result.out)["fold"]["blocks"][2]["forward"];
  };
  CHECK(forward("threads") == "weights");
  CHECK(forward("gloo") == "activations");
}
