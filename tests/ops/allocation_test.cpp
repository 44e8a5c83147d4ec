#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "octavo/ops/adamw.h"
#include "octavo/ops/attention.h"
#include "octavo/ops/cross_entropy.h"
#include "octavo/ops/rms_norm.h"
#include "octavo/ops/rope.h"
#include "octavo/ops/swiglu.h"
#include "ops/allocation_trace.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;

namespace {

/// Runs `body(device)` on both devices after a first run that fills the libraries' own caches.
template <class Body>
void check_same_allocations(Body&& body) {
  body(at::kCPU);
  const AllocationTrace real = allocations_of(at::kCPU, [&] { body(at::kCPU); });
  const AllocationTrace meta = allocations_of(at::kMeta, [&] { body(at::kMeta); });
  CHECK(real == meta);
}

at::TensorOptions on(at::Device device, at::ScalarType dtype) {
  return at::device(device).dtype(dtype);
}

}  // namespace

TEST_CASE("a trace's peak is the highest sum of live bytes") {
  CHECK(peak_bytes({100, 50, -100, 20, -50, -20}) == 150);
  const AllocationTrace trace = allocations_of(at::kCPU, [] { at::empty({10}, at::kFloat); });
  CHECK(trace == AllocationTrace{40, -40});
}

TEST_CASE("the meta forms of the row operations allocate what the CPU forms allocate, in the same order") {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t tokens : {0, 1, 100}) {
      CAPTURE(name_of(dtype));
      CAPTURE(tokens);
      check_same_allocations([&](at::Device device) {
        const at::Tensor x = at::ones({tokens, 24}, on(device, dtype)), w = at::ones({24}, on(device, dtype));
        const ops::RmsNormResult norm = ops::rms_norm_forward(x, w, 1e-6);
        const ops::RmsNormGradient gradient = ops::rms_norm_backward(norm.y, x, w, norm.rstd);
        const ops::SwigluGradient gates = ops::swiglu_backward(ops::swiglu_forward(x, x), x, gradient.dx);
      });
      check_same_allocations([&](at::Device device) {
        const at::Tensor angles = at::ones({tokens, 8}, on(device, dtype == at::kDouble ? at::kDouble : at::kFloat));
        const ops::RopeTable table{angles, angles};
        const at::Tensor rotated = ops::rope(at::ones({tokens, 3, 16}, on(device, dtype)), table, false);
      });
      const at::Tensor labels = at::zeros({tokens}, at::kLong);
      check_same_allocations([&](at::Device device) {
        at::Tensor logits = at::ones({tokens, 50}, on(device, dtype));
        ops::VocabularyMerge state = ops::vocabulary_merge_begin(tokens, dtype, device);
        ops::vocabulary_merge_block(state, logits, labels, 0);
        ops::logits_to_gradient_(logits, state.lse, labels, 0, 1.0);
        const at::Tensor loss = ops::loss_sum(state, labels);
      });
    }
  }
}

TEST_CASE("the meta form of a rope table has the peak of the CPU form") {
  // Not the same trace: on the CPU libtorch wraps the constants of a few calls in tensors of one element.
  const auto peak_on = [](at::Device device) {
    return peak_bytes(allocations_of(device.type(), [&] {
      const RopeSpec spec{.llama3 = RopeSpec::Llama3{8.0, 1.0, 4.0, 8192}};
      const ops::RopeTable table = ops::rope_table(spec, 16, at::zeros({100}, on(device, at::kLong)), at::kFloat);
    }));
  };
  CHECK(peak_on(at::kCPU) == peak_on(at::kMeta));
}

TEST_CASE("the meta form of AdamW allocates nothing, as the CPU form") {
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
    at::Tensor w = at::zeros({40}, device), m = at::zeros({40}, device), v = at::zeros({40}, device);
    const at::Tensor g = at::zeros({40}, device), copy = at::zeros({40}, on(device, at::kBFloat16));
    const AllocationTrace trace = allocations_of(device.type(), [&] {
      ops::adamw_(w, m, v, g, copy, {.learning_rate = 0.1});
      ops::sum_of_squares(g);
    });
    CHECK(trace.empty());
  }
}

TEST_CASE("the meta form of attention allocates what the CPU form allocates, scratch included") {
  struct Shape {
    std::int64_t tokens, keys, heads, kv_heads, width;
  };
  for (const at::ScalarType dtype : kDtypes) {
    for (const Shape& s :
         {Shape{2048, 2048, 8, 4, 64}, Shape{100, 5000, 2, 1, 8}, Shape{1, 1, 2, 2, 5}, Shape{0, 3, 2, 1, 8}}) {
      CAPTURE(name_of(dtype));
      CAPTURE(s.tokens);
      const std::vector<ops::AttentionPiece> pieces{{0, s.tokens, 0, s.keys, true}};
      check_same_allocations([&](at::Device device) {
        const at::Tensor q = at::ones({s.tokens, s.heads, s.width}, on(device, dtype));
        const at::Tensor k = at::ones({s.keys, s.kv_heads, s.width}, on(device, dtype));
        const ops::AttentionResult result = ops::attention_forward(q, k, k, pieces, 0.1);
        const ops::AttentionGradient gradient = ops::attention_backward(result.out, q, k, k, result, pieces, 0.1);
      });
    }
  }
}
