// The closed form of a step's peak memory against the dry run's, which is the engine itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/plan/alike.h"
#include "octavo/plan/memory.h"

using namespace octavo;

namespace {

struct Case {
  std::string model, layout, stash;
  std::int64_t length, batch, micro_batch;
  ElementType compute;

  std::string to_string() const {
    return cat(model, ", ", layout.empty() ? "one rank" : layout, ", ", length, " tokens, batch ", batch,
               ", micro-batch ", micro_batch, ", ", element_type_name(compute), ", ", stash);
  }
};

const std::vector<std::string> kModels = {"smollm2-135m", "llama-3-8b", "qwen3-8b", "llama-3-70b", "tsp-reference-7b"};
const std::vector<std::string> kStashes = {"keep", "recompute", "attention", "qkv,gate_up", "attention,qkv,gate_up"};
const std::vector<std::string> kLayouts = {
    "",
    "data=2",
    "data=8:zero1",
    "tensor=8",
    "tensor=4:scatter",
    "tensor=8:scatter:replicate",
    "tensor=3:pad",
    "data=4:zero1 tensor=2",
    "data=2:zero1 tensor=4:scatter",
    "fold=2:weights",
    "fold=4:weights",
    "fold=8:weights",
    "fold=2:weights:buckets-2",
    "fold=3:weights",
    "fold=4:weights:contiguous",
    "fold=2:activations",
    "fold=8:activations",
    "fold=4:activations:contiguous",
    "fold=2",
    "fold=4",
    "fold=8",
    "fold=3",
    "fold=3:activations",
    "fold=5",
    "fold=6:weights:buckets-2",
    "fold=2:activations tensor=2:scatter",
    "fold=4 tensor=2:scatter:replicate",
    "fold=2:weights tensor=2:scatter",
    "fold=2 tensor=4",
    "data=2:zero1 fold=4",
};

ModelSpec model_of(const std::string& name) {
  return read_model_spec(cat("tests/data/configs/", name, ".json"));
}

/// Of the ranks that differ, the most.
Bytes dry_peak(const ModelSpec& model, const Case& c) {
  DryRunOptions options;
  options.layout = parse_runnable_layout(c.layout);
  options.compute = c.compute;
  options.trainer.stash = parse_stash_policy(c.stash);
  options.trainer.micro_batch = c.micro_batch;
  options.batch = c.batch;
  options.sequence_length = c.length;
  Bytes most = 0;
  for (const std::vector<int>& alike : alike_ranks(ParamTable(model), options.layout, c.batch)) {
    most = std::max(most, dry_run(model, options, alike.front()).peak.total);
  }
  return most;
}

MemoryEstimate estimate(const ModelSpec& model, const Case& c) {
  const MemoryModel memory(model, {c.length, c.batch, c.compute});
  return memory.peak({parse_layout(c.layout), c.micro_batch, parse_stash_policy(c.stash)});
}

/// Whether the layout runs the model at all; then within `tolerance`. Returns the relative error.
double check(const Case& c, double tolerance) {
  const ModelSpec model = model_of(c.model);
  MemoryEstimate expected;
  try {
    expected = estimate(model, c);
  } catch (const UsageError&) {
    CHECK_THROWS_AS(dry_peak(model, c), UsageError);
    return 0;
  }
  const auto seen = static_cast<double>(dry_peak(model, c));
  const double error = static_cast<double>(expected.total()) / seen - 1;
  INFO(c.to_string() << ": " << expected.to_string() << "; the dry run has " << format_bytes(static_cast<Bytes>(seen))
                     << ", " << fixed(100 * error, 2) << "%");
  CHECK(std::abs(error) <= tolerance);
  return error;
}

constexpr double kTolerance = 0.03;

Case draw(std::mt19937& random, const std::vector<std::int64_t>& lengths) {
  const auto pick = [&](const auto& list) { return list[random() % list.size()]; };
  Case c{pick(kModels), pick(kLayouts), pick(kStashes), pick(lengths), 0, 0, ElementType::Float32};
  c.micro_batch = 1 + static_cast<std::int64_t>(random() % 3);
  c.batch = parse_layout(c.layout).mesh.size(Axis::Data) * (1 + static_cast<std::int64_t>(random() % 5));
  if (random() % 2 == 0) c.compute = ElementType::BFloat16;
  return c;
}

}  // namespace

TEST_CASE("the closed form has the peak of the dry run, for models, lengths and layouts drawn at random") {
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) check(draw(random, {33, 512, 2048, 5000, 8192}), kTolerance);
}

TEST_CASE("every built layout and stash policy has its closed form, on a model of few layers") {
  for (const std::string& layout : kLayouts) {
    for (const std::string& stash : kStashes) {
      const std::int64_t data = parse_layout(layout).mesh.size(Axis::Data);
      check({"smollm2-135m", layout, stash, 1024, 2 * data, 1, ElementType::Float32}, kTolerance);
    }
  }
}

TEST_CASE("the full grid of models, lengths, layouts, policies and types" *
          doctest::skip(std::getenv("OCTAVO_PROOF") == nullptr)) {
  double least = 0, most = 0;
  int count = 0;
  for (const std::string& model : kModels) {
    for (const std::string& layout : kLayouts) {
      for (const std::string& stash : kStashes) {
        for (const std::int64_t length : {512, 8192, 131072}) {
          for (const ElementType compute : {ElementType::Float32, ElementType::BFloat16}) {
            const std::int64_t data = parse_layout(layout).mesh.size(Axis::Data);
            const double error = check({model, layout, stash, length, 2 * data, 1, compute}, kTolerance);
            least = std::min(least, error);
            most = std::max(most, error);
            ++count;
          }
        }
      }
    }
  }
  MESSAGE(count << " cases, from " << fixed(100 * least, 2) << "% to " << fixed(100 * most, 2) << "%");
}
