#include "octavo/validation/identities.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

using namespace octavo;
using nlohmann::json;

namespace {

json golden(const std::string& name) {
  const std::string path = cat("tests/data/golden/", name, ".json");
  return parse_json(read_text_file(path, path), path);
}

/// Every case is compared, and every figure is the same.
void check_all(const std::string& name, int cases) {
  CAPTURE(name);
  const IdentityReport report = check_identities(golden(name));
  CHECK(report.cases == cases);
  CHECK(report.figures >= report.cases);
  for (const std::string& wrong : report.wrong) FAIL_CHECK(wrong);
  for (const std::string& left_out : report.left_out) FAIL_CHECK(left_out);
}

}  // namespace

TEST_CASE("every figure of the golden identities is found again") {
  check_all("audit_qwen35_27b", 107);
  check_all("activation_memory", 108);
  check_all("pipeline_bubbles", 105);
  check_all("hardware", 19);
  check_all("measured_step_times", 10);
  check_all("tsp_reference", 137);
}

TEST_CASE("cases at other degrees, lengths and world sizes are read the same way") {
  // By hand: 16 ranks have 4 copies of each KV head, 6 query heads of which 4 do not share out evenly.
  json file = golden("audit_qwen35_27b");
  file["cases"] = json::parse(R"([
    {"id": "params", "tolerance_rel": 0, "input": {"tp": 4, "pp": 1, "zero": 0, "state_bytes_per_param": 16,
      "kv_policy": "exact"}, "expect": {"params_per_rank": 6724505728, "state_bytes_per_rank": 107592091648,
      "sum_over_ranks_minus_model": 2024448}},
    {"id": "params8", "tolerance_rel": 0, "input": {"tp": 8, "pp": 1, "zero": 0, "state_bytes_per_param": 18,
      "kv_policy": "replicate"}, "expect": {"params_per_rank": 3383561792, "sum_over_ranks_minus_model": 172495872}},
    {"id": "status", "tolerance_rel": 0, "input": {"tp": 3}, "expect": {"failing_dims": ["vocab_rows",
      "ffn_intermediate", "kv_heads", "gdn_qk_heads"], "status": "refuse_or_special", "kv_replication_factor": 1}},
    {"id": "bubble", "tolerance_rel": 1e-9, "input": {"pp": 16, "micro_batches": 5, "schedule": "1f1b"},
      "expect": {"over_ideal": 3, "of_total": 0.75}}])");
  const IdentityReport report = check_identities(file);
  CHECK(report.cases == 4);
  CHECK(report.wrong.empty());
  CHECK(report.left_out.empty());
}

TEST_CASE("another figure is named with both values, and what nobody knows is left out") {
  json file = golden("pipeline_bubbles");
  json item = file["cases"][0];
  item["expect"]["bubble_time"] = 7;
  item["expect"]["colour"] = "green";
  file["cases"] = json::array({item, {{"id", "x"}, {"input", json::object()}, {"expect", {{"weather", 1}}}}});
  const IdentityReport report = check_identities(file);
  REQUIRE(report.wrong.size() == 1);
  CHECK(report.wrong[0].find("bubble_time: 3.0, the file has 7") != std::string::npos);
  REQUIRE(report.left_out.size() == 2);
  CHECK(report.left_out[0].find("colour") != std::string::npos);
  CHECK(report.left_out[1].find("nothing is known") != std::string::npos);
  CHECK_THROWS_AS(check_identities(json::object()), UsageError);
}

TEST_CASE("values of wrong types or sizes in identities are reasons and never a crash") {
  for (const char* name : {"audit_qwen35_27b", "activation_memory", "pipeline_bubbles", "hardware", "tsp_reference"}) {
    CAPTURE(name);
    const json file = golden(name);
    for (const json& wrong :
         {json(-3), json(0), json("x"), json(), json::array(), json(1e300), json(std::int64_t{1} << 40)}) {
      json changed = file;
      for (json& item : changed["cases"]) {
        for (auto& entry : item["input"].items()) {
          if (entry.key() != "schedule" && entry.key() != "mode") entry.value() = wrong;
        }
      }
      const IdentityReport report = check_identities(changed);
      CHECK(report.left_out.size() + static_cast<std::size_t>(report.figures) > 0);
      changed = file;
      if (changed.contains("model")) {
        for (auto& entry : changed["model"].items()) entry.value() = wrong;
        CHECK_THROWS_AS(check_identities(changed), UsageError);
      }
    }
  }
}
