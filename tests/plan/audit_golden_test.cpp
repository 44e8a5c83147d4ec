// Every case of the golden audits, through the library: a case is recognised by what it expects, so that cases of the
// same kind at other degrees, lengths or models need no change here.
#include <doctest/doctest.h>

#include <cmath>

#include "octavo/base/json.h"
#include "plan/audit_readers.h"

using namespace octavo;
using namespace octavo::audit_cases;

namespace {

/// Both are the same: integers, texts and lists exactly, reals to `tolerance` or to the six digits that are written.
void check_same(const json& found, const json& wanted, double tolerance, const std::string& where) {
  CAPTURE(where);
  CAPTURE(found.dump());
  CAPTURE(wanted.dump());
  constexpr double kWrittenDigits = 6e-6;
  if (wanted.is_object()) {
    for (const auto& item : wanted.items()) {
      REQUIRE(found.contains(item.key()));
      check_same(found[item.key()], item.value(), tolerance, where + "." + item.key());
    }
  } else if (wanted.is_number_float() || (wanted.is_number() && found.is_number_float())) {
    const double real = wanted.get<double>();
    CHECK(std::abs(found.get<double>() - real) <=
          std::max(tolerance, tolerance > 0 ? 0 : kWrittenDigits) * std::abs(real));
  } else {
    CHECK(found == wanted);
  }
}

int check_cases(const json& cases, const Audit& audit) {
  std::map<std::string, Reader> readers = size_readers();
  readers.merge(stage_readers());
  int num_checked = 0;
  for (const json& each : cases) {
    CAPTURE(each["id"].get<std::string>());
    const json& expect = each["expect"];
    for (const auto& [key, reader] : readers) {
      if (!expect.contains(key)) continue;
      check_same(reader(audit, each["input"], expect), expect, each["tolerance_rel"], each["id"]);
      ++num_checked;
      break;
    }
  }
  return num_checked;
}

}  // namespace

TEST_CASE("every figure of the published audit of Qwen3.5-27B is found again") {
  const std::string file = "tests/data/golden/audit_qwen35_27b.json";
  const json golden = parse_json(read_text_file(file, file), file);
  const Audit audit("tests/data/configs/qwen3.5-27b.json");
  CHECK(check_cases(golden["cases"], audit) == golden["n_cases"]);
  CHECK(golden["n_cases"] == 107);
}

TEST_CASE("cases at other degrees, lengths and world sizes are read the same way") {
  const Audit audit("tests/data/configs/qwen3.5-27b.json");
  // By hand: 16 ranks have 4 copies of each KV head, 6 query heads of which 4 do not share out evenly.
  const json cases = json::parse(R"([
    {"id": "params", "tolerance_rel": 0, "input": {"tp": 4, "pp": 1, "zero": 0, "state_bytes_per_param": 16,
      "kv_policy": "exact"}, "expect": {"params_per_rank": 6724505728, "state_bytes_per_rank": 107592091648,
      "sum_over_ranks_minus_model": 2024448}},
    {"id": "params8", "tolerance_rel": 0, "input": {"tp": 8, "pp": 1, "zero": 0, "state_bytes_per_param": 18,
      "kv_policy": "replicate"}, "expect": {"params_per_rank": 3383561792, "sum_over_ranks_minus_model": 172495872}},
    {"id": "status", "tolerance_rel": 0, "input": {"tp": 3}, "expect": {"failing_dims": ["vocab_rows",
      "ffn_intermediate", "kv_heads", "gdn_qk_heads"], "status": "refuse_or_special", "kv_replication_factor": 1}},
    {"id": "bubble", "tolerance_rel": 1e-9, "input": {"pp": 16, "micro_batches": 5, "schedule": "1f1b"},
      "expect": {"over_ideal": 3, "of_total": 0.75}}])");
  CHECK(check_cases(cases, audit) == 4);
}
