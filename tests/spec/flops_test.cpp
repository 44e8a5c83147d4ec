#include "octavo/spec/flops.h"

#include <doctest/doctest.h>

#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

using namespace octavo;

TEST_CASE("the FLOPs of Llama-2-7B follow from its matrices and its causal pairs") {
  const ModelSpec model = read_model_spec("tests/data/configs/llama-2-7b.json");
  // All but the embedding [32000, 4096] and the 65 norms [4096] is multiplied.
  const std::int64_t matrices = 6'738'415'616 - 32'000LL * 4096 - 65 * 4096;
  CHECK(matmul_parameters(model) == matrices);
  const std::vector<std::int64_t> one = {4096};
  const double pairs = 4096.0 * 4097 / 2;
  CHECK(forward_flops(model, one) == doctest::Approx(2.0 * matrices * 4096 + 32 * 4 * 4096.0 * pairs).epsilon(1e-15));
  CHECK(training_flops(model, one) == 3 * forward_flops(model, one));
}

TEST_CASE("a tied head is multiplied with all the same") {
  const ModelSpec model = read_model_spec("tests/data/configs/smollm2-135m.json");
  REQUIRE(model.tied_embeddings);
  CHECK(matmul_parameters(model) == num_parameters(model) - 61 * 576);
}

TEST_CASE("sequences add up, and a long one costs more than its halves") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-8b.json");
  const std::vector<std::int64_t> whole = {2048}, halves = {1024, 1024}, half = {1024}, none = {}, empty = {0};
  CHECK(forward_flops(model, halves) == 2 * forward_flops(model, half));
  CHECK(forward_flops(model, whole) - forward_flops(model, halves) == 36.0 * 4 * 4096 * 1024 * 1024);
  CHECK(forward_flops(model, none) == 0);
  CHECK(forward_flops(model, empty) == 0);
}

TEST_CASE("layers and head add up to the model, whichever way pairs are counted") {
  for (const char* name : {"qwen3.5-27b", "mixtral-8x7b", "qwen3-8b"}) {
    const ModelSpec model = read_model_spec(cat("tests/data/configs/", name, ".json"));
    const std::vector<std::int64_t> lengths = {4096};
    for (const CausalPairs pairs : {CausalPairs::Visited, CausalPairs::HalfSquare}) {
      Flops total = head_flops(model, 4096);
      for (const LayerSpec& layer : model.layers) total += layer_flops(model, layer, 4096, pairs);
      CHECK(total == doctest::Approx(forward_flops(model, lengths, pairs)).epsilon(1e-15));
    }
  }
}

TEST_CASE("a token is multiplied with the experts that are chosen for it, their router and no others") {
  const ModelSpec model = read_model_spec("tests/data/configs/mixtral-8x7b.json");
  // All active parameters but the embedding and the norms.
  CHECK(matmul_parameters(model) == num_active_parameters(model) - 32'000LL * 4096 - 65 * 4096);
}

TEST_CASE("a hybrid's matrices are its parameters but for embedding, norms, taps and decay") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3.5-27b.json");
  const std::int64_t norms = 129 * 5120 + 16 * 2 * 256 + 48 * 128, taps = 48 * 10240 * 4, decay = 48 * 2 * 48;
  CHECK(matmul_parameters(model) == num_parameters(model) - 248320LL * 5120 - norms - taps - decay);
}

TEST_CASE("latent attention and plain MLPs are counted from their dimensions") {
  ModelSpec model;
  model.hidden_size = 10;
  model.vocab_size = 3;
  model.layers.push_back({LatentAttentionSpec{2, 0, 4, 6, 8, 12}, PlainMlpSpec{40}});
  model.layers.push_back({LatentAttentionSpec{2, 5, 4, 6, 8, 12}, PlainMlpSpec{40}});
  const std::int64_t kv = 10 * (4 + 6) + 4 * 2 * (8 + 12), out = 2 * 12 * 10, mlp = 2 * 10 * 40;
  CHECK(matmul_parameters(model, model.layers[0]) == 10 * 2 * 14 + kv + out + mlp);
  CHECK(matmul_parameters(model, model.layers[1]) == 5 * (10 + 2 * 14) + kv + out + mlp);
  CHECK(attention_core_flops(model.layers[0], 5) == 2.0 * 2 * (14 + 12) * 15);
  CHECK(num_parameters(model) == 2 * 3 * 10 + 10 + matmul_parameters(model, model.layers[0]) +
                                     matmul_parameters(model, model.layers[1]) + 4 * 10 + 4 + 4 + 5);
}

TEST_CASE("a negative length is refused") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-8b.json");
  const std::vector<std::int64_t> lengths = {8, -1};
  CHECK_THROWS_AS(forward_flops(model, lengths), UsageError);
}
