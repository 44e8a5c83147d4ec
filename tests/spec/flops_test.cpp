#include "octavo/spec/flops.h"

#include <doctest/doctest.h>

#include <vector>

#include "octavo/base/error.h"

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

TEST_CASE("a negative length is refused") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-8b.json");
  const std::vector<std::int64_t> lengths = {8, -1};
  CHECK_THROWS_AS(forward_flops(model, lengths), UsageError);
}
