// Times every op of ops/ in its forms (ours, naive, libtorch's own) on one layer's shapes: T 2048 tokens, H 512 hidden,
// F 2048 features, A 8 query and G 4 KV heads of D 64, V 4096 vocabulary rows. The forms alternate, so that a change of
// the machine's clock meets all of them. One thread. Prints a table; shares are of the matrix product of the same run.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "octavo/ops/adamw.h"
#include "octavo/ops/attention.h"
#include "octavo/ops/cross_entropy.h"
#include "octavo/ops/rms_norm.h"
#include "octavo/ops/rope.h"
#include "octavo/ops/swiglu.h"

namespace {

using namespace octavo;

constexpr std::int64_t kTokens = 2048, kHidden = 512, kFeatures = 2048, kHeads = 8, kKvHeads = 4, kHeadDim = 64,
                       kVocabulary = 4096;

struct Form {
  std::string name;
  std::function<void()> run;
};

/// Processor time of this thread: all the work happens in it, and neighbours on the machine disturb it least.
double thread_ms() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// Median milliseconds of each form, run in turn.
std::vector<double> median_ms(const std::vector<Form>& forms) {
  constexpr int kRepeats = 9;
  std::vector<std::vector<double>> times(forms.size());
  for (int repeat = -1; repeat < kRepeats; ++repeat) {  // the first round only warms up
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const double start = thread_ms();
      forms[i].run();
      if (repeat >= 0) times[i].push_back(thread_ms() - start);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& series : times) {
    std::nth_element(series.begin(), series.begin() + kRepeats / 2, series.end());
    medians.push_back(series[kRepeats / 2]);
  }
  return medians;
}

/// `bytes` that must move, or `flops` that must be done (0: not the measure of this op); `peak` in GF/s.
void report(const char* op, const std::vector<Form>& forms, double bytes, double flops, double peak) {
  const std::vector<double> times = median_ms(forms);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    std::printf("  %-22s %-9s %9.3f ms", op, forms[i].name.c_str(), times[i]);
    if (bytes > 0) std::printf("  %7.1f GB/s", bytes / times[i] / 1e6);
    if (flops > 0) std::printf("  %7.1f GF/s", flops / times[i] / 1e6);
    if (flops > 0 && peak > 0) std::printf("  %3.0f%% of the product", 100 * flops / times[i] / 1e6 / peak);
    std::printf("\n");
  }
}

void bench_rows(at::ScalarType dtype) {
  const double size = dtype == at::kFloat ? 4 : 2;
  const at::Tensor x = at::randn({kTokens, kHidden}).to(dtype), dy = at::randn({kTokens, kHidden}).to(dtype);
  const at::Tensor w = at::randn({kHidden}).to(dtype);
  const at::Tensor rstd = ops::rms_norm_forward(x, w, 1e-6).rstd;
  report("rms_norm forward",
         {{"ours", [&] { ops::rms_norm_forward(x, w, 1e-6); }},
          {"naive", [&] { ops::rms_norm_forward_naive(x, w, 1e-6); }},
          {"libtorch", [&] { at::rms_norm(x, {kHidden}, w, 1e-6); }}},
         2 * size * kTokens * kHidden, 0, 0);
  report("rms_norm backward",
         {{"ours", [&] { ops::rms_norm_backward(dy, x, w, rstd); }},
          {"naive", [&] { ops::rms_norm_backward_naive(dy, x, w, rstd); }}},
         3 * size * kTokens * kHidden, 0, 0);

  const at::Tensor qkv = at::randn({kTokens, kKvHeads, kHeads / kKvHeads + 2, kHeadDim}).to(dtype);
  const at::Tensor q = qkv.narrow(2, 0, kHeads / kKvHeads), wd = at::randn({kHeadDim}).to(dtype);
  const ops::RopeTable table = ops::rope_table({}, kHeadDim, at::arange(kTokens, at::kLong), dtype);
  report("rope", {{"ours", [&] { ops::rope(q, table, false); }}, {"naive", [&] { ops::rope_naive(q, table, false); }}},
         2 * size * kTokens * kHeads * kHeadDim, 0, 0);
  report("rms_norm of q heads",
         {{"ours", [&] { ops::rms_norm_forward(q, wd, 1e-6); }},
          {"naive", [&] { ops::rms_norm_forward_naive(q, wd, 1e-6); }}},
         2 * size * kTokens * kHeads * kHeadDim, 0, 0);

  const at::Tensor gate = at::randn({kTokens, kFeatures}).to(dtype), up = at::randn({kTokens, kFeatures}).to(dtype);
  const at::Tensor dgate = at::randn({kTokens, kFeatures}).to(dtype);
  report("swiglu forward",
         {{"ours", [&] { ops::swiglu_forward(gate, up); }},
          {"naive", [&] { ops::swiglu_forward_naive(gate, up); }},
          {"libtorch", [&] { at::silu(gate).mul_(up); }}},
         3 * size * kTokens * kFeatures, 0, 0);
  report("swiglu backward",
         {{"ours", [&] { ops::swiglu_backward(dgate, gate, up); }},
          {"naive", [&] { ops::swiglu_backward_naive(dgate, gate, up); }},
          {"libtorch",
           [&] {
             at::silu_backward(dgate * up, gate);
             at::silu(gate).mul_(dgate);
           }}},
         5 * size * kTokens * kFeatures, 0, 0);

  at::Tensor logits = at::randn({kTokens, kVocabulary}).to(dtype);
  const at::Tensor labels = at::arange(kTokens, at::kLong);
  ops::VocabularyMerge state = ops::vocabulary_merge_begin(kTokens, dtype, at::kCPU);
  report("vocabulary merge",
         {{"ours", [&] { ops::vocabulary_merge_block(state, logits, labels, 0); }},
          {"libtorch",
           [&] {
             at::logaddexp(state.lse, at::logsumexp(logits.to(at::kFloat), -1));
             logits.gather(1, labels.unsqueeze(1));
           }}},
         size * kTokens * kVocabulary, 0, 0);
  // In place, time after time: the values stay small numbers, so every call costs the same.
  report("logits to gradient",
         {{"ours", [&] { ops::logits_to_gradient_(logits, state.lse, labels, 0, 1.0); }},
          {"libtorch",
           [&] {
             logits.sub_(state.lse.unsqueeze(1)).exp_();
             logits.scatter_add_(1, labels.unsqueeze(1), at::full({kTokens, 1}, -1.0, logits.options()));
           }}},
         2 * size * kTokens * kVocabulary, 0, 0);
}

void bench_attention(at::ScalarType dtype, std::int64_t tokens, double peak) {
  const at::Tensor q = at::randn({tokens, kHeads, kHeadDim}).to(dtype);
  const at::Tensor k = at::randn({tokens, kKvHeads, kHeadDim}).to(dtype);
  const at::Tensor v = at::randn({tokens, kKvHeads, kHeadDim}).to(dtype);
  const at::Tensor dout = at::randn({tokens, kHeads, kHeadDim}).to(dtype);
  const std::vector<ops::AttentionPiece> pieces{{0, tokens, 0, tokens, true}};
  const double scale = 0.125;
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(0, 1).unsqueeze(0); };
  const at::Tensor qh = heads_first(q), kh = heads_first(k), vh = heads_first(v), douth = heads_first(dout);
  const ops::AttentionResult result = ops::attention_forward(q, k, v, pieces, scale);
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(qh, kh, vh, 0.0, true, {}, scale);
  const at::Tensor flash_out = out, flash_lse = lse;
  std::vector<Form> forward{
      {"ours", [&] { ops::attention_forward(q, k, v, pieces, scale); }},
      {"libtorch", [&] { at::_scaled_dot_product_flash_attention_for_cpu(qh, kh, vh, 0.0, true, {}, scale); }}};
  std::vector<Form> backward{{"ours", [&] { ops::attention_backward(dout, q, k, v, result, pieces, scale); }},
                             {"libtorch", [&] {
                                at::_scaled_dot_product_flash_attention_for_cpu_backward(
                                    douth, qh, kh, vh, flash_out, flash_lse, 0.0, true, {}, scale);
                              }}};
  if (tokens <= kTokens) {
    forward.push_back({"naive", [&] { ops::attention_forward_naive(q, k, v, pieces, scale); }});
    backward.push_back({"naive", [&] { ops::attention_backward_naive(dout, q, k, v, result, pieces, scale); }});
  }
  // Causal: half of the scores. Two products forward, five backward.
  const double flops = 2.0 * kHeadDim * kHeads * static_cast<double>(tokens) * static_cast<double>(tokens + 1) / 2;
  const std::string length = std::to_string(tokens);
  report(("attention fwd " + length).c_str(), forward, 0, 2 * flops, peak);
  report(("attention bwd " + length).c_str(), backward, 0, 5 * flops, peak);
}

void bench_adamw() {
  const std::int64_t n = 4 << 20;
  at::Tensor w = at::randn({n}), m = at::zeros({n}), v = at::zeros({n});
  const at::Tensor g = at::randn({n}), copy = at::empty({n}, at::kBFloat16);
  const ops::AdamWOptions options{.learning_rate = 1e-4, .weight_decay = 0.1, .step = 10};
  std::printf("optimizer, %lld elements\n", static_cast<long long>(n));
  report("adamw",
         {{"ours", [&] { ops::adamw_(w, m, v, g, {}, options); }},
          {"naive", [&] { ops::adamw_naive_(w, m, v, g, {}, options); }}},
         7.0 * 4 * static_cast<double>(n), 0, 0);
  report("adamw, bf16 copy",
         {{"ours", [&] { ops::adamw_(w, m, v, g, copy, options); }},
          {"naive", [&] { ops::adamw_naive_(w, m, v, g, copy, options); }}},
         (7.0 * 4 + 2) * static_cast<double>(n), 0, 0);
  report("sum of squares",
         {{"ours", [&] { ops::sum_of_squares(g); }},
          {"libtorch", [&] { at::linalg_vector_norm(g, 2, {}, false, at::kDouble); }}},
         4.0 * static_cast<double>(n), 0, 0);
}

}  // namespace

/// Without arguments everything; "attention" or "rows": that part alone.
int main(int argc, char** argv) {
  // Freed memory stays with the process: a page fault per page of every result would drown the arithmetic.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::string part = argc > 1 ? argv[1] : "";
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a = at::randn({kTokens, kHidden}).to(dtype), b = at::randn({kHidden, kFeatures}).to(dtype);
    const double flops = 2.0 * kTokens * kHidden * kFeatures;
    const double peak = flops / median_ms({{"mm", [&] { at::mm(a, b); }}})[0] / 1e6;
    std::printf("%s: product of [%lld, %lld] and [%lld, %lld] %.1f GF/s\n", c10::toString(dtype),
                static_cast<long long>(kTokens), static_cast<long long>(kHidden), static_cast<long long>(kHidden),
                static_cast<long long>(kFeatures), peak);
    if (part != "attention") bench_rows(dtype);
    if (part == "rows") continue;
    for (const std::int64_t tokens : {512, 2048, 8192}) bench_attention(dtype, tokens, peak);
  }
  if (part != "attention") bench_adamw();
  return 0;
}
