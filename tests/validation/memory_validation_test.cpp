#include "octavo/validation/memory_validation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"
#include "octavo/validation/framework_memory.h"
#include "octavo/validation/golden_model.h"

using namespace octavo;
using nlohmann::json;

namespace {

json golden() {
  return parse_json(read_text_file("tests/data/golden/memory_measured.json", "[test]"), "[test]");
}

json one_case(const json& input, const json& expect) {
  return {{"models", golden()["models"]},
          {"cases", json::array({{{"id", "x"}, {"tolerance_rel", 0.03}, {"input", input}, {"expect", expect}}})}};
}

/// A run of Megatron-LM that says everything.
json whole_input() {
  return {{"model", "llama3-8b"},
          {"gpus", 8},
          {"tp", 2},
          {"pp", 1},
          {"cp", 1},
          {"dp", 4},
          {"seq", 4096},
          {"micro_batch", 1},
          {"zero", 1},
          {"recompute", "none"},
          {"framework", "Megatron-LM"}};
}

const json kPeak = {{"peak_allocated_gib_max_rank", 30}};

ValidationRow row_of(const json& input, const json& expect = kPeak) {
  const auto rows = validate_memory(one_case(input, expect));
  REQUIRE(rows.size() == 1);
  return rows[0];
}

}  // namespace

TEST_CASE("every published peak whose configuration says enough is within its tolerance") {
  std::map<std::string, int> used, left_out;
  for (const ValidationRow& row : validate_memory(golden())) {
    CAPTURE(row.id);
    CAPTURE(row.quantity);
    CAPTURE(row.why);
    CHECK(!row.why.empty());
    if (!row.is_used()) {
      ++left_out[row.why];
      continue;
    }
    ++used[row.group];
    INFO(*row.predicted << " for " << row.published << ": " << fixed(100 * row.error(), 2) << "%");
    CHECK(std::abs(row.error()) <= row.tolerance + 1e-9);
  }
  for (const auto& [group, count] : used) MESSAGE(group << ": " << count << " figures");
  for (const auto& [why, count] : left_out) MESSAGE(count << " left out: " << why);
  for (const char* group : {"simumax:llama3-70b", "simumax:deepseekv2", "torchtitan:llama3-8b", "nanotron", "alst",
                            "tsp", "deepspeed-gist"}) {
    CHECK(used.contains(group));
  }
}

TEST_CASE("peaks of one framework and model have their published order, and grow with the micro-batch as published") {
  std::vector<ValidationRow> rows;
  for (const ValidationRow& row : validate_memory(golden())) {
    if (row.group == "nanotron" && row.quantity == "peak_allocated_mib") rows.push_back(row);
  }
  REQUIRE(rows.size() > 5);
  for (const ValidationRow& a : rows) {
    CAPTURE(a.id);
    CHECK(std::abs(a.error()) <= 0.05);
    for (const ValidationRow& b : rows) {
      if (a.published > 1.05 * b.published) CHECK(*a.predicted > *b.predicted);
    }
  }
}

TEST_CASE("a configuration that does not say enough is left out, and the reason names what is missing") {
  CHECK(row_of(whole_input()).is_used());
  const std::pair<const char*, const char*> missing[] = {
      {"model", "no model is named"}, {"framework", "no framework is named"}, {"recompute", "recompute policy"},
      {"seq", "sequence length"},     {"micro_batch", "micro-batch"},         {"zero", "share out their state"}};
  for (const auto& [key, reason] : missing) {
    for (const bool is_null : {false, true}) {
      CAPTURE(key);
      json input = whole_input();
      if (is_null) {
        input[key] = nullptr;
      } else {
        input.erase(key);
      }
      const ValidationRow row = row_of(input);
      CHECK(!row.is_used());
      CHECK(row.why.find("configuration incomplete") == 0);
      CHECK(row.why.find(reason) != std::string::npos);
    }
  }
  json other = whole_input();
  other["model"] = "3b-class";
  CHECK(row_of(other).why == "configuration incomplete: the dimensions of model \"3b-class\" are unknown");
  other = whole_input();
  other["framework"] = "colossal";
  CHECK(row_of(other).why == "no rules for framework \"colossal\"");
  other = whole_input();
  other["pp"] = 1000;
  CHECK(!row_of(other).is_used());
  CHECK(!row_of(whole_input(), {{"throughput", 3}}).is_used());
}

TEST_CASE("what can be told from the rest may be unknown") {
  json input = whole_input();
  for (const char* key : {"pp", "cp", "dp", "ep", "sequence_parallel"}) input[key] = nullptr;
  CHECK(row_of(input).predicted == row_of(whole_input()).predicted);
}

TEST_CASE("recompute, ZeRO and sequence parallelism each lower a peak") {
  const auto peak = [](const char* key, const json& value) {
    json input = whole_input();
    input["micro_batch"] = 4;
    input[key] = value;
    return *row_of(input).predicted;
  };
  const double plain = peak("dp", 4);
  CHECK(peak("recompute", "full") < plain);
  CHECK(peak("zero", 0) > plain);
  CHECK(peak("zero", 2) < plain);
  CHECK(peak("sequence_parallel", true) < plain);
  CHECK(peak("layers", 16) < plain);
}

TEST_CASE("whatever stands in a case, it has a row with a finite figure or a reason") {
  const json file = golden();
  const std::vector<json> values = {
      nullptr, 0, -3, 1, 7, 1'000'000'000'000'000, 1e300, "text", true, json::array(), json::object()};
  std::set<std::string> seen;
  for (const json& each : file["cases"]) {
    if (!seen.insert(each["group"].get<std::string>() + each.value("kind", "")).second) continue;
    for (const auto& [key, ignored] : each["input"].items()) {
      for (const json& value : values) {
        json changed = {{"models", file["models"]}, {"cases", json::array({each})}};
        changed["cases"][0]["input"][key] = value;
        CAPTURE(key);
        CAPTURE(value.dump());
        std::vector<ValidationRow> rows;
        CHECK_NOTHROW(rows = validate_memory(changed));
        CHECK(!rows.empty());
        for (const ValidationRow& row : rows) {
          CHECK(!row.why.empty());
          if (row.is_used()) CHECK((std::isfinite(*row.predicted) && *row.predicted >= 0));
        }
      }
    }
  }
}

TEST_CASE("a file of another form is refused") {
  CHECK_THROWS_AS(validate_memory(json::array()), UsageError);
  CHECK_THROWS_AS(validate_memory(json{{"cases", {{{"id", 3}}}}}), UsageError);
}

TEST_CASE("models are made from dimensions in four kinds, and a dimension that is missing is named") {
  const json models = golden()["models"];
  const auto llama = find_golden_model(models, "llama3-8b");
  REQUIRE(llama.has_value());
  CHECK(num_parameters(*llama) == 8'030'261'248);
  CHECK(find_golden_model(models, "llama3-8b", 3)->layers.size() == 3);
  CHECK(num_parameters(*find_golden_model(models, "llama-7b")) == 6'738'415'616);
  CHECK(!find_golden_model(models, "no such model").has_value());

  const auto deepseek = find_golden_model(models, "deepseek-v2");
  REQUIRE(deepseek.has_value());
  CHECK(std::holds_alternative<LatentAttentionSpec>(deepseek->layers[0].mixer));
  CHECK(std::holds_alternative<GatedMlpSpec>(deepseek->layers[0].ffn));
  CHECK(std::get<MoeSpec>(deepseek->layers[1].ffn).num_experts == 160);

  json gpt = {{"kind", "gpt"}, {"hidden", 64}, {"ffn", 256}, {"layers", 2}, {"query_heads", 4}, {"vocab", 100}};
  CHECK(std::holds_alternative<PlainMlpSpec>(golden_model(gpt, "g").layers[1].ffn));
  gpt["gated_mlp"] = nullptr;
  CHECK_NOTHROW(golden_model(gpt, "g"));
  gpt.erase("ffn");
  CHECK_THROWS_AS(golden_model(gpt, "g"), UsageError);
  gpt["ffn"] = 0;
  CHECK_THROWS_WITH_AS(golden_model(gpt, "g"), "[validation] model g: ffn is 0; a dimension is at least 1", UsageError);
  gpt["kind"] = "rnn";
  CHECK_THROWS_AS(golden_model(gpt, "g"), UsageError);
}
