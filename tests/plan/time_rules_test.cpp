#include "octavo/plan/time_rules.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/mesh/hardware.h"

using namespace octavo;

TEST_CASE("where a software was never measured its shares are the nearest accelerator's, and its errors go") {
  const FoundRules own = find_time_rules("megatron-core", "H100"), other = find_time_rules("megatron-core", "H200");
  CHECK(own.note.empty());
  CHECK(own.rules.mean_error > 0);
  CHECK(other.note.find("no run of megatron-core on H200") == 0);
  CHECK(other.rules.accelerator == "H200");
  CHECK(other.rules.tensor_exposed == own.rules.tensor_exposed);
  CHECK(other.rules.mean_error == 0);
  CHECK(other.rules.axes.empty());
  CHECK(find_time_rules("megatron-core", "B200").note.find("runs of megatron-lm") != std::string::npos);
  CHECK_THROWS_AS(find_time_rules("megatron", "H100"), UsageError);
}

TEST_CASE("borrowed shares make no matmul faster than the fastest that was measured") {
  for (const Accelerator& accelerator : hardware_catalogue()) {
    CAPTURE(accelerator.name);
    for (const std::string& software : known_software()) {
      const FoundRules found = find_time_rules(software, accelerator.name);
      if (found.note.empty() || !accelerator.measured_bf16_flops || !accelerator.bf16_flops) continue;
      CHECK(found.rules.matmul_share * accelerator.bf16_flops->value <=
            accelerator.measured_bf16_flops->value * (1 + 1e-12));
    }
  }
  CHECK(find_time_rules("megatron-core", "MI300X").note.find("TFLOP/s measured on it") != std::string::npos);
}

TEST_CASE("constants can be given, say so, and take the errors with them") {
  TimeRules rules = find_time_rules("megatron-core", "H100").rules;
  set_time_constants(rules, "tensor_exposed=0,step_latency=1e-2");
  CHECK(rules.tensor_exposed == 0);
  CHECK(rules.step_latency == 0.01);
  CHECK(rules.mean_error == 0);
  for (const TimeConstant& constant : time_constants()) {
    const bool is_given = constant.name == "tensor_exposed" || constant.name == "step_latency";
    CHECK((constant.origin(rules).first == "given by the user") == is_given);
  }
  for (const auto& [text, part] : {std::pair{"tensor_exposd=0.2", "nearest is tensor_exposed"},
                                   {"tensor_exposed", "write NAME=VALUE"},
                                   {"tensor_exposed=", "no number"},
                                   {"tensor_exposed=nan", "use 0 to 1"},
                                   {"tensor_exposed=1.5", "use 0 to 1"},
                                   {"tensor_exposed=-1", "use 0 to 1"},
                                   {"matmul_share=0", "more than 0"},
                                   {"step_latency=1e9", "use 0 to 100 s"},
                                   {"", "write NAME=VALUE"},
                                   {"overlap=0.5x", "no number"}}) {
    CAPTURE(text);
    rules = find_time_rules("megatron-core", "H100").rules;
    try {
      set_time_constants(rules, text);
      FAIL("taken");
    } catch (const UsageError& error) {
      CHECK(std::string(error.what()).find(part) != std::string::npos);
    }
    CHECK(rules.given.empty());
  }
}

TEST_CASE("an axis is beyond the runs where none had it above 1, and so are schedules that none had") {
  const TimeRules rules = find_time_rules("megatron-core", "H100").rules;
  CHECK(beyond_runs(rules, parse_layout("data=4:zero1 tensor=8:scatter pipeline=2:interleaved-4")).empty());
  CHECK(beyond_runs(rules, parse_layout("fold=8 pipeline=2:zb")) == std::vector<std::string>{"pipeline:zb", "fold"});
  CHECK(beyond_runs(rules, parse_layout("data=1")).empty());
}
