// What the closed form says where no dry run can be asked: axes that are not built yet, and wrong input.
#include "octavo/plan/memory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

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
  // Gradients that wait for the bubble are none on the first stage, and most on the last.
  CHECK(kept("pipeline=4:zb", 8) == kept("pipeline=4", 8));
  CHECK(peak("pipeline=4:zb", "recompute").stage == 3);
  CHECK(peak("pipeline=4:zb", "recompute").total() > peak("pipeline=4", "recompute").total());
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

TEST_CASE("state is that of the parameters, of every family") {
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/configs")) {
    if (entry.path().stem() == "facts") continue;
    CAPTURE(entry.path());
    const ModelSpec model = read_model_spec(entry.path());
    const MemoryModel memory(model, {512, 1, ElementType::Float32});
    const MemoryEstimate one = memory.peak({parse_layout(""), 1, parse_stash_policy("recompute")});
    CHECK(ratio(state(one), 16 * num_parameters(model)) == doctest::Approx(1).epsilon(0.002));
  }
}

TEST_CASE("ranks of the expert axis hold their share of the experts, and optimize it alone") {
  const ModelSpec model = read_model_spec("tests/data/configs/mixtral-8x7b.json");
  const MemoryModel memory(model, {4096, 8, ElementType::BFloat16});
  const auto weights = [&](const char* layout) {
    return memory.peak({parse_layout(layout), 1, parse_stash_policy("keep")}).of(MemoryPart::Weights);
  };
  const Bytes experts = Bytes{32} * 8 * 3 * 14336 * 4096 * 2, rest = weights("") - experts;
  CHECK(rest > 0);
  CHECK(ratio(weights("expert=4"), rest + experts / 4) == doctest::Approx(1).epsilon(0.001));
  CHECK(ratio(weights("data=2:zero3 expert=4"), rest / 8 + experts / 8) == doctest::Approx(1).epsilon(0.001));
  const MemoryEstimate estimate = memory.peak({parse_layout("expert=8"), 1, parse_stash_policy("keep")});
  const MemoryEstimate whole = memory.peak({parse_layout("data=8"), 1, parse_stash_policy("keep")});
  CHECK(estimate.of(MemoryPart::Activations) == whole.of(MemoryPart::Activations));
}

TEST_CASE("a model of several kinds of layer keeps what each of them keeps") {
  const auto kept = [](const std::vector<int>& order) {
    ModelSpec model = model_of(static_cast<int>(order.size()));
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] == 1) model.layers[i].mixer = DeltaNetSpec{4, 8, 32, 64, 4};
    }
    const MemoryModel memory(model, {4096, 1, ElementType::BFloat16});
    return memory.peak({parse_layout(""), 1, parse_stash_policy("keep")}).of(MemoryPart::Activations);
  };
  const Bytes attention = kept({0, 0, 0, 0}) - kept({0, 0, 0}), delta_net = kept({1, 1, 1, 1}) - kept({1, 1, 1});
  CHECK(delta_net > attention);
  // Followed are the last layer of each kind and what lies behind it; the rest is counted.
  CHECK(kept({1, 1, 1, 0, 1, 1, 1, 0}) == kept({1, 1, 1, 0}) + 3 * delta_net + attention);
  CHECK(kept({0, 1, 0, 0}) == kept({1, 0, 0}) + attention);
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
