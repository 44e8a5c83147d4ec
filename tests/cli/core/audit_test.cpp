// octavo audit, as users type it.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/temporary_folder.h"
#include "cli/core/run_core.h"

using nlohmann::json;
using octavo::testing::run_core;
using Said = octavo::testing::Captured;

namespace {

const std::string kHybrid = "tests/data/configs/qwen3.5-27b.json";

Said audit(std::vector<std::string> options, const std::string& model = kHybrid) {
  options.insert(options.begin(), {"audit", model});
  return run_core(std::move(options));
}

json audited(std::vector<std::string> options, const std::string& model = kHybrid) {
  options.emplace_back("--json");
  const Said said = audit(std::move(options), model);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  return json::parse(said.out);
}

void check_refused(const std::vector<std::string>& options, const std::vector<std::string>& parts) {
  const Said said = audit(options);
  CAPTURE(said.err);
  CHECK(said.code == 2);
  CHECK(said.out.empty());
  CHECK(std::count(said.err.begin(), said.err.end(), '\n') == 1);
  for (const std::string& part : parts) CHECK(said.err.find(part) != std::string::npos);
}

bool says(const Said& said, const std::string& text) {
  return said.out.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("an audit says which degrees fit, what stops the next, and what copies cost") {
  const Said said = audit({"--layout", "tensor=8:replicate"});
  CHECK(said.code == 0);
  CHECK(says(said, "26,895,998,464 parameters"));
  CHECK(says(said, "tensor degrees that fit every dimension: 1, 2, 4; with copies of KV heads: 1, 2, 4, 8"));
  CHECK(says(said, "8 is stopped by kv_heads"));
  CHECK(says(said, "+41.9 MB weights, +83.9 MB gradients, +251.7 MB optimizer"));
  CHECK(says(said, "fold=8"));
  CHECK(says(said, "not even: attention: 4 KV heads over tensor=8"));
}

TEST_CASE("the JSON of an audit has every number of its text") {
  const json out = audited({"--layout", "pipeline=5 tensor=8:replicate", "--rank", "9", "--degrees", "1,5"});
  CHECK(out["parameters"] == 26895998464);
  CHECK(out["tensor"]["failing"] == json{"kv_heads"});
  CHECK(out["policies"][0]["policy"] == "replicate");
  CHECK(out["policies"][0]["kinds"][0]["per_rank"]["weights_bytes"] == 41943040.0);
  CHECK(out["policies"][0]["kinds"][0]["total"]["kv_cache_bytes_per_token"] == 65536.0);
  CHECK(out["policies"][1]["policy"] == "pad");
  CHECK(out["rank"]["axes"]["pipeline"]["ranks"] == json{1, 9, 17, 25, 33});
  CHECK(out["rank"]["axes"]["tensor"]["index"] == 1);
  CHECK(out["rank"]["heads"][1]["units"] == json{0, 1});
  CHECK(out["rank"]["heads"][1]["parts"] == json{3, 6});
  CHECK(out["pipeline"].size() == 1);
  CHECK(out["pipeline"][0]["layers"][3] == json{{"delta_net", 9}, {"attention", 4}, {"with_experts", 0}});
  CHECK(out["problems"].size() == 2);
  const Said said = audit({"--layout", "pipeline=5 tensor=8:replicate", "--rank", "9", "--degrees", "1,5"});
  CHECK(says(said, "rank 9 of 40: layers 13 to 25"));
  CHECK(says(said, "3 x (10+3), 1 x (9+4), 1 x (9+3)"));
}

TEST_CASE("a layout that refuses the model is audited all the same, but shows no rank") {
  const Said said = audit({"--layout", "tensor=8"});
  CHECK(said.code == 0);
  CHECK(says(said, "no rank is shown: the layout refuses"));
  CHECK(says(said, "pad        attention"));
  CHECK(audited({"--layout", "tensor=8"})["rank"].is_null());
}

TEST_CASE("--strict fails for copies, padding and unequal stages, and for nothing else") {
  CHECK(audit({"--layout", "pipeline=4 tensor=4 data=2", "--strict"}).code == 0);
  for (const char* layout : {"tensor=8", "tensor=8:replicate", "tensor=8:pad", "pipeline=3", "pipeline=65",
                             "sequence=3", "fold=3", "sequence=8:ulysses", "expert=2", "tensor=7:pad"}) {
    CAPTURE(layout);
    const Said said = audit({"--layout", layout, "--strict"});
    CHECK(said.code == 1);
    CHECK(said.err.find("not even") != std::string::npos);
    CHECK(says(said, "not even: "));
    CHECK(audit({"--layout", layout}).code == 0);
  }
}

TEST_CASE("experts divide over the expert and the tensor axis together") {
  const std::string model = "tests/data/configs/mixtral-8x7b.json";
  CHECK(audit({"--layout", "expert=4 tensor=2", "--strict"}, model).code == 0);
  const Said said = audit({"--layout", "expert=3", "--strict"}, model);
  CHECK(said.code == 1);
  CHECK(said.err.find("8 experts do not divide") != std::string::npos);
  CHECK(audit({"--layout", "expert=8 tensor=2", "--strict"}, model).code == 1);
  CHECK(says(audit({}, model), "12,879,925,248 active per token"));
}

TEST_CASE("a world that is not the layout's is an error that names the nearest") {
  CHECK(audit({"--layout", "data=2 tensor=4", "--world", "8"}).code == 0);
  check_refused({"--layout", "data=2 tensor=4", "--world", "12"}, {"--world 12", "8 ranks", "8 and 16"});
  check_refused({"--layout", "data=2 tensor=4", "--world", "3"}, {"--world 3", "nearest", "8"});
  check_refused({"--layout", "data=2 tensor=4", "--world", "0"}, {"--world 0"});
}

TEST_CASE("values that mean nothing get one clear line") {
  check_refused({"--degrees", "0"}, {"--degrees", "\"0\""});
  check_refused({"--degrees", "-4"}, {"--degrees", "-4"});
  check_refused({"--degrees", "4..2"}, {"--degrees", "2 is below 4"});
  check_refused({"--degrees", "1,x"}, {"--degrees", "\"x\""});
  check_refused({"--degrees", ""}, {"--degrees"});
  check_refused({"--degrees", "1..99999999999999999999"}, {"--degrees"});
  check_refused({"--seq-len", "0"}, {"--seq-len \"0\""});
  check_refused({"--seq-len", "-5"}, {"--seq-len \"-5\""});
  check_refused({"--seq-len", "many"}, {"seq-len"});
  check_refused({"--layout", ""}, {"an empty value"});
  CHECK(says(audit({"--seq-len", "128K"}), "131072 tokens"));
  check_refused({"--seq-len", "99999999999"}, {"--seq-len"});
  check_refused({"--micro-batches", "0"}, {"--micro-batches 0"});
  check_refused({"--rank", "8", "--layout", "tensor=8"}, {"--rank 8", "0 to 7"});
  check_refused({"--rank", "-1"}, {"--rank -1"});
  check_refused({"--dtype", "fp8"}, {"fp8"});
  check_refused({"--layout", "tensor=0"}, {"tensor", "0"});
  check_refused({"--layout", "tensr=2"}, {"tensr", "tensor"});
  check_refused({"--layout", "tensor=2000000000:pad"}, {"tensor=2000000000", "goes to tensor=512"});
  check_refused({"--strct"}, {"--strct", "did you mean --strict?"});
  check_refused({"--degree=4"}, {"did you mean --degrees?"});
  check_refused({"extra-argument"}, {"extra-argument"});
  CHECK(run_core({"audit"}).code == 2);
  CHECK(run_core({"audit", "no-such-file.json"}).err.find("no-such-file.json") != std::string::npos);
}

TEST_CASE("every published model is audited at every degree") {
  for (const char* name : {"llama-2-7b", "llama-3-8b", "llama-3.1-405b", "mixtral-8x7b", "qwen3-30b-a3b", "qwen3-32b",
                           "qwen3.5-0.8b", "qwen3.5-9b", "smollm2-135m", "tsp-reference-7b"}) {
    for (const char* layout :
         {"data=1", "tensor=6:pad", "tensor=16:replicate:scatter", "data=2:zero3 pipeline=3 fold=5"}) {
      CAPTURE(name);
      CAPTURE(layout);
      const Said said =
          audit({"--layout", layout, "--degrees", "1..64"}, std::string("tests/data/configs/") + name + ".json");
      CAPTURE(said.err);
      CHECK(said.code == 0);
    }
  }
}

TEST_CASE("the options of an audit can stand in a file") {
  const octavo::TemporaryFolder folder;
  const std::string file = (folder.path() / "audit.toml").string();
  std::ofstream(file) << "layout = \"tensor=8:replicate\"\ndegrees = \"1,2,4,8\"\n";
  CHECK(says(audit({"--config", file}), "tensor=8:replicate"));
  std::ofstream(file) << "layot = \"tensor=8\"\n";
  check_refused({"--config", file}, {"layot", "layout"});
}
