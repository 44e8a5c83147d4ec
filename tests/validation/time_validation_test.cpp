#include "octavo/validation/time_validation.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "octavo/base/json.h"
#include "octavo/plan/time_rules.h"

using namespace octavo;

namespace {

TimeValidation published() {
  const std::string file = "tests/data/golden/measured_step_times.json";
  return validate_time(parse_json(read_text_file(file, "[test]"), file));
}

}  // namespace

TEST_CASE("the axes and the largest error of a set of constants are those of the published runs") {
  const TimeValidation time = published();
  REQUIRE(time.rules.size() == time_rules_table().size());
  for (std::size_t i = 0; i < time.rules.size(); ++i) {
    const TimeRules& rules = time_rules_table()[i];
    CAPTURE(rules.software);
    CAPTURE(rules.accelerator);
    CHECK(time.rules[i].software == rules.software);
    CHECK(time.rules[i].accelerator == rules.accelerator);
    CHECK(time.rules[i].axes == rules.axes);
    CHECK(time.rules[i].most <= rules.largest_error);
    CHECK(time.rules[i].most > rules.largest_error - 0.0002);
    CHECK(time.rules[i].mean == doctest::Approx(rules.mean_error).epsilon(0.01));
  }
}

TEST_CASE("runs that differ in batch and data ranks alone are one configuration") {
  for (const RulesError& rules : published().rules) {
    CHECK(rules.configurations >= 1);
    CHECK(rules.configurations <= rules.rows);
    if (rules.software == "megatron-core") CHECK(rules.configurations < rules.rows / 2);
  }
}
