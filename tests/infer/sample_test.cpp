#include "octavo/infer/sample.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <cstring>

#include "octavo/base/error.h"
#include "octavo/checkpoint/safetensors.h"
#include "octavo/comm/record/record_world.h"
#include "octavo/train/model_source.h"

using namespace octavo;

namespace {

std::vector<std::int64_t> read_ids(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  std::vector<std::int64_t> ids(tensor->num_elements());
  std::memcpy(ids.data(), file.bytes(*tensor).data(), ids.size() * sizeof(std::int64_t));
  return ids;
}

struct Model {
  explicit Model(const std::string& folder)
      : source(folder, 0),
        table(source.spec()),
        store(table, place(table, {}, 0), ElementType::Float32, at::kCPU, false) {
    store.load(source.rows());
  }
  ModelSource source;
  ParamTable table;
  ParamStore store;
  std::unique_ptr<World> world = make_record_world(0, 1);
  RankGroups groups{*world, {}, store.placement()};
};

}  // namespace

TEST_CASE("the most likely continuation is the one that transformers finds") {
  const at::NoGradGuard no_grad;
  for (const char* name : {"llama-mha", "llama-gqa", "qwen3", "qwen3-bf16"}) {
    CAPTURE(name);
    const std::string folder = std::string("tests/data/cases/") + name;
    Model model(folder);
    Decoder decoder(model.source.spec(), model.store, model.groups, {});
    const SafetensorsFile reference(folder + "/reference.safetensors");
    const std::vector<std::int64_t> prompt = read_ids(reference, "prompt_ids"),
                                    expected = read_ids(reference, "generated");
    const auto tokens = sample(decoder, prompt, {.num_tokens = static_cast<std::int64_t>(expected.size())});
    CHECK(std::vector<std::int64_t>(tokens.begin() + prompt.size(), tokens.end()) == expected);
  }
}

TEST_CASE("a drawn sample depends on the seed and on nothing else") {
  const at::NoGradGuard no_grad;
  Model model("tests/data/cases/qwen3");
  Decoder decoder(model.source.spec(), model.store, model.groups, {});
  const auto draw = [&](std::uint64_t seed) {
    return sample(decoder, {1, 2, 3}, {.num_tokens = 12, .temperature = 1.5, .seed = seed, .max_context = 8});
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
}

TEST_CASE("an empty prompt and an id outside the vocabulary are refused") {
  const at::NoGradGuard no_grad;
  Model model("tests/data/cases/qwen3");
  Decoder decoder(model.source.spec(), model.store, model.groups, {});
  CHECK_THROWS_AS(sample(decoder, {}, {}), UsageError);
  CHECK_THROWS_WITH_AS(sample(decoder, {512}, {}), doctest::Contains("id 512"), UsageError);
}
