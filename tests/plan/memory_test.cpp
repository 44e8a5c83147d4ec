// What the closed form says where no dry run can be asked: axes that are not built yet, and wrong input.
#include "octavo/plan/memory.h"

#include <doctest/doctest.h>

#include <string>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

using namespace octavo;

namespace {

/// Four equal layers whose matrices are small beside their activations.
ModelSpec model_of(int layers) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 256;
  model.vocab_size = 1024;
  for (int layer = 0; layer < layers; ++layer) {
    model.layers.push_back({AttentionSpec{8, 8, 32, false, {}}, GatedMlpSpec{1024}});
  }
  return model;
}

MemoryEstimate peak(const std::string& layout, const std::string& stash = "keep", std::int64_t batch = 8,
                    int layers = 8, std::int64_t length = 4096) {
  const MemoryModel model(model_of(layers), {length, batch, ElementType::BFloat16});
  return model.peak({parse_layout(layout), 1, parse_stash_policy(stash)});
}

Bytes state(const MemoryEstimate& estimate) {
  return estimate.of(MemoryPart::Weights) + estimate.of(MemoryPart::Gradients) + estimate.of(MemoryPart::Optimizer);
}

double ratio(Bytes a, Bytes b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

TEST_CASE("a stage keeps as many micro-batches as its schedule has in flight") {
  const auto kept = [](const std::string& layout, std::int64_t micro_batches) {
    return peak(layout, "keep", micro_batches).of(MemoryPart::Activations);
  };
  // Of 8 layers over 4 stages the first has 2, and in flight 4 micro-batches at most under 1F1B, all of them under
  // GPipe.
  const Bytes two = kept("pipeline=4", 2), one_more = kept("pipeline=4", 3) - two;
  CHECK(one_more > 0);
  CHECK(kept("pipeline=4", 4) == two + 2 * one_more);
  CHECK(kept("pipeline=4", 8) == two + 2 * one_more);
  CHECK(kept("pipeline=4:gpipe", 8) == two + 6 * one_more);
  // In 2 parts per rank: 2 (P-1) + P + 1 = 11 parts of half a stage.
  CHECK(kept("pipeline=4:interleaved-2", 8) == two + one_more * 7 / 2);
  // Pairs that wait for the bubble come on top.
  CHECK(kept("pipeline=4:zb", 8) > two + 2 * one_more);
  CHECK(peak("pipeline=4").stage == 0);
}

TEST_CASE("one micro-batch of a pipeline has its peak where the head is") {
  CHECK(peak("pipeline=4", "recompute", 1).stage == 3);
}

TEST_CASE("ZeRO 3 keeps 1/R of weights, gradients and optimizer state, and gathers two layers") {
  const MemoryEstimate whole = peak("data=8"), shards = peak("data=8:zero3");
  CHECK(ratio(state(whole), state(shards)) == doctest::Approx(8).epsilon(0.001));
  CHECK(shards.of(MemoryPart::Activations) == whole.of(MemoryPart::Activations));
  const std::int64_t layer = 4 * 256 * 256 + 3 * 256 * 1024 + 2 * 256;
  CHECK(shards.of(MemoryPart::Communication) >= layer * 2);
  CHECK(shards.of(MemoryPart::Communication) <= 2 * layer * (2 + 4));
  // Shards lie over the ranks of data and sequence together.
  CHECK(state(peak("data=4:zero3 sequence=2")) == state(shards));
}

TEST_CASE("the sequence axis cuts activations and no state; fewer keys and values exist round a ring") {
  const MemoryEstimate one = peak("", "keep", 1);
  for (const char* form : {"gather", "ring", "ulysses"}) {
    CAPTURE(form);
    const MemoryEstimate cut = peak(cat("sequence=4:", form), "keep", 1);
    CHECK(state(cut) == state(one));
    CHECK(ratio(one.of(MemoryPart::Activations), cut.of(MemoryPart::Activations)) == doctest::Approx(4).epsilon(0.08));
  }
  // One layer of attention above all else, whose peak is in its backward.
  const auto attention = [](const char* layout) {
    ModelSpec model = model_of(1);
    model.layers[0].ffn = GatedMlpSpec{64};
    model.vocab_size = 64;
    const MemoryModel memory(model, {1 << 16, 1, ElementType::BFloat16});
    const MemoryEstimate estimate = memory.peak({parse_layout(layout), 1, parse_stash_policy("keep")});
    CHECK(estimate.place == PeakPlace::MixerBackward);
    return estimate.total();
  };
  CHECK(attention("sequence=8:ring") < attention("sequence=8:gather"));
}

TEST_CASE("what a plan cannot be is refused in one line") {
  CHECK_THROWS_WITH_AS(peak("pipeline=9"), "[plan] pipeline=9 over 8 layers; a stage has at least one", UsageError);
  CHECK_THROWS_AS(peak("tensor=3"), UsageError);
  CHECK_NOTHROW(peak("tensor=3:pad"));
  const MemoryModel model(model_of(1), {16, 1, ElementType::Float32});
  CHECK_THROWS_AS(model.peak({parse_layout(""), 0, {}}), UsageError);
  CHECK_THROWS_AS(MemoryModel(model_of(1), {0, 1, ElementType::Float32}), UsageError);
}

TEST_CASE("an estimate says how much, where and of what, the largest part first") {
  const std::string text = peak("data=8:zero3").to_string();
  CAPTURE(text);
  CHECK(text.find(" in the ") != std::string::npos);
  CHECK(text.find(": activations ") != std::string::npos);
}
