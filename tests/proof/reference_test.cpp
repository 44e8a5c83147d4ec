#include "octavo/proof/reference.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"

using namespace octavo;

namespace {
constexpr const char* kCases[] = {"llama-mha", "llama-gqa", "llama-gqa-sharded", "qwen3", "qwen3-bf16"};

ProofReport run_case(const std::string& name, const std::string& layout, ElementType compute,
                     const std::string& stash) {
  TrainingRunOptions options;
  options.layout = parse_layout(layout);
  options.compute = compute;
  options.trainer.stash = parse_stash_policy(stash);
  return compare_with_reference("tests/data/cases/" + name, options);
}
}  // namespace

TEST_CASE("one rank computes what transformers computes") {
  for (const char* name : kCases) {
    for (const ElementType compute : {ElementType::Float32, ElementType::Float64}) {
      CAPTURE(name);
      const ProofReport report = run_case(name, "", compute, "keep");
      INFO(report.to_string());
      CHECK(report.passed());
      CHECK(report.rows.size() == 7);
    }
  }
}

TEST_CASE("two ranks and a recompute compute what transformers computes") {
  for (const char* name : kCases) {
    CAPTURE(name);
    const ProofReport report = run_case(name, "data=2:zero1", ElementType::Float32, "recompute");
    INFO(report.to_string());
    CHECK(report.passed());
  }
}

TEST_CASE("folded ranks compute what transformers computes, in every form") {
  for (const char* name : {"llama-mha", "llama-gqa", "qwen3"}) {
    for (const char* layout : {"fold=2:weights", "fold=2:activations", "fold=2", "fold=4:activations", "fold=4"}) {
      CAPTURE(name);
      CAPTURE(layout);
      const ProofReport report = run_case(name, layout, ElementType::Float32, "keep");
      INFO(report.to_string());
      CHECK(report.passed());
    }
  }
}

TEST_CASE("a model in several files is the same model") {
  const ModelSource one("tests/data/cases/llama-gqa", 0), several("tests/data/cases/llama-gqa-sharded", 0);
  const ParamTable table(one.spec());
  for (const Parameter& parameter : table.parameters()) {
    std::vector<double> a(parameter.elements()), b(parameter.elements());
    one.rows()(parameter, 0, a);
    several.rows()(parameter, 0, b);
    CHECK(a == b);
  }
}

TEST_CASE("a folder without stored numbers is refused in one line") {
  CHECK_THROWS_WITH_AS(run_case("../bad/good-llama", "", ElementType::Float32, "keep"),
                       doctest::Contains("reference.safetensors"), UsageError);
}
