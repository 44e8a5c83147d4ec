#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/strategies.h"
#include "validation/answers.h"
#include "validation/golden_case.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr double kBillion = 1e9;

/// Of the file's "model", where that is no hybrid; k and f follow from a case's g and F.
struct ReferenceModel {
  double hidden, layers;
};

/// A whole number as an integer: files have counts of elements.
json number(double value) {
  constexpr double kMostExact = 9e15;
  const bool whole = value == std::floor(value) && std::abs(value) < kMostExact;
  return whole ? json(static_cast<std::int64_t>(value)) : json(value);
}

json number(const std::optional<double>& value, double times) {
  return value ? number(*value * times) : json();
}

double positive(const json& input, const char* key) {
  constexpr double kMost = 1e18;
  const json& value = input.at(key);
  if (!value.is_number() || !(value > 0) || value > kMost) throw UsageError(cat("its ", key, " is no number above 0"));
  return value;
}

int degree_of(const json& input, const char* key) {
  return static_cast<int>(count(input, key, 1 << 16));
}

/// Cases with g and F: keys are g times, features F times as wide as the hidden size, queries as wide.
StrategyLayer layer_of(const json& input, double hidden) {
  constexpr double kPlainHeads = 1, kFourTimes = 4;
  const double g = input.contains("g") ? positive(input, "g") : kPlainHeads;
  const double f = input.contains("F") ? positive(input, "F") : kFourTimes;
  return {hidden, hidden, g * hidden, f * hidden};
}

StrategyRanks ranks_of(const json& input) {
  static const std::map<std::string, Strategy> kNames = {
      {"dp", Strategy::Data},
      {"tp_allreduce", Strategy::Tensor},
      {"tp_megatron_sp", Strategy::TensorScatter},
      {"sp_gather_kv", Strategy::SequenceGather},
      {"ring_attention", Strategy::SequenceRing},
      {"ulysses", Strategy::SequenceUlysses},
      {"tp_sp", Strategy::TensorSequence},
      {"tsp", Strategy::Fold},
  };
  const std::string name = input.at("strategy");
  const auto found = kNames.find(name);
  if (found == kNames.end()) throw UsageError(cat("no formula is known for strategy ", in_quotes(name)));
  const int ranks = degree_of(input, "D");
  if (found->second != Strategy::TensorSequence) return on_ranks(found->second, ranks);
  const StrategyRanks both{found->second, degree_of(input, "T"), degree_of(input, "Sigma")};
  if (both.all() != ranks) throw UsageError("its T times Sigma is not its D");
  return both;
}

json traffic(const json& input, const ReferenceModel& model) {
  const StrategyTraffic sent =
      strategy_traffic(layer_of(input, model.hidden), ranks_of(input), positive(input, "tokens"));
  const double bytes = positive(input, "bytes_per_element");
  return {{"forward_elements", number(sent.forward)},
          {"backward_elements", number(sent.backward)},
          {"backward_extra_if_inputs_regathered", number(sent.inputs_again)},
          {"grad_sync_elements_per_step", number(sent.once_a_step)},
          {"forward_bytes", number(bytes * sent.forward)},
          {"fwd_bwd_bytes", number(bytes * (sent.forward + sent.backward))},
          {"fwd_bwd_gradsync_bytes", number(bytes * (sent.forward + sent.backward + sent.once_a_step))}};
}

json memory(const json& input, const ReferenceModel& model) {
  constexpr double kNarrowState = 16, kWideState = 18;  // bytes per parameter; gradients of 2 or 4 bytes
  const StrategyRanks ranks = ranks_of(input);
  const StrategyMemory held = strategy_memory(layer_of(input, model.hidden), ranks, positive(input, "tokens"));
  const double bytes = positive(input, "bytes_per_element"), parameters = held.parameters * model.layers;
  const bool by_shard = ranks.strategy == Strategy::Fold;
  const json gathered = number(held.gathered_keys_values, bytes);
  return {{"params_per_rank", number(parameters)},
          {"state_bytes_s16", number(kNarrowState * parameters)},
          {"state_bytes_s18", number(kWideState * parameters)},
          {"saved_activation_bytes_no_recompute", number(bytes * held.kept * model.layers)},
          {"saved_activation_bytes_full_recompute", number(bytes * held.kept_inputs * model.layers)},
          {"gathered_kv_bytes_one_shard", by_shard ? gathered : json()},
          {"gathered_kv_bytes_all_heads", by_shard ? json() : gathered},
          {"weight_shard_pair_bytes_mlp", number(held.shard_pair, bytes)}};
}

json flops(const json& input, const ReferenceModel& model) {
  const double tokens = positive(input, "tokens"), sequences = positive(input, "sequences");
  const StrategyFlops found =
      strategy_flops(layer_of(input, model.hidden), degree_of(input, "D"), tokens, tokens / sequences);
  return {{"forward_per_rank_per_layer", number(found.linear + found.attention)},
          {"linear_part", number(found.linear)},
          {"causal_attention_part", number(found.attention)},
          {"same_for", "tp, sp, tp_sp, tsp"}};
}

json crossover(const json& input) {
  const double hidden = positive(input, "h");
  const FoldCrossover found = fold_crossover(layer_of(input, hidden));
  return {{"forward_over_h", number(found.forward, 1 / hidden)},
          {"forward_tokens", number(found.forward, 1)},
          {"fwd_bwd_over_h", number(found.training, 1 / hidden)},
          {"fwd_bwd_vs_megatron_sp_regather_over_h", number(found.training_again, 1 / hidden)},
          {"full_recompute_both_fused_over_h", number(found.with_recompute, 1 / hidden)}};
}

json crossover_of_both(const json& input) {
  if (input.at("pass_") != "forward") throw UsageError("its pass is not the forward one");
  const std::optional<double> found =
      fold_crossover(layer_of(input, 1), degree_of(input, "T"), degree_of(input, "Sigma"));
  return {{"exists", found.has_value()}, {"tokens_over_h", number(found, 1)}};
}

json overlap(const json& input) {
  const double rate = positive(input, "achieved_flops"), link = positive(input, "bandwidth_each_way");
  const double bytes = positive(input, "bytes_per_element");
  return {{"min_tokens_per_rank_mlp_ring_forward", number(tokens_that_hide_hops(rate, link, bytes))},
          {"backward_bf16_grads", number(tokens_that_hide_hops_backward(rate, link, bytes, 2))},
          {"backward_fp32_grads", number(tokens_that_hide_hops_backward(rate, link, bytes, 4))}};
}

json zigzag(const json& input) {
  const int ranks = degree_of(input, "D");
  const TokenCut folded{TokenOrder::Zigzag, ranks};
  if (folded.num_chunks() != count(input, "chunks")) throw UsageError("its chunks are not two per rank");
  // A contiguous cut into as many chunks: index p of D has those of indices 2p and 2p+1 of 2D.
  const TokenCut halves{TokenOrder::Contiguous, folded.num_chunks()};
  json even = json::array(), contiguous = json::array();
  double sum = 0, most = 0;
  for (int index = 0; index < ranks; ++index) {
    even.push_back(chunk_pairs(folded, index));
    const std::int64_t pairs = chunk_pairs(halves, 2 * index) + chunk_pairs(halves, 2 * index + 1);
    contiguous.push_back(pairs);
    sum += static_cast<double>(pairs);
    most = std::max(most, static_cast<double>(pairs));
  }
  const double last_over_first = contiguous.back().get<double>() / contiguous.front().get<double>();
  // Files write six digits.
  constexpr double kDigits = 1e5;
  const auto written = [](double value) {
    const double scale = kDigits / std::pow(10, std::floor(std::log10(value)));
    return std::round(value * scale) / scale;
  };
  return {{"work_per_rank_chunk_units", even},
          {"contiguous_work", contiguous},
          {"contiguous_max_over_mean", number(written(most * ranks / sum))},
          {"contiguous_last_over_first", number(written(last_over_first))}};
}

/// A published peak of memory, in units of 10^9 bytes.
struct Bar {
  std::string strategy;
  double tokens, gigabytes;
};

/// Fig. 9 of arXiv 2604.26294 as its vendor's post repeats it (7B-class model, 8 MI300X, D = 8, batch 1): the ends of
/// two of its rows.
const std::array<Bar, 4>& published_bars() {
  static const std::array<Bar, 4> kBars = {
      Bar{"tsp", 16384, 31.0}, {"tsp", 131072, 38.8}, {"tp", 16384, 31.5}, {"tp", 131072, 70.0}};
  return kBars;
}

/// A bar that the file has goes before the one known here.
double bar(const json& file, const std::string& strategy, double tokens) {
  for (const json& item : cases_of(file)) {
    if (!item.is_object() || !item.contains("expect") || !item["expect"].is_object()) continue;
    const json in = item.value("input", json::object());
    if (!in.is_object() || in.value("strategy", json()) != strategy || in.value("tokens", json()) != tokens) continue;
    if (const json peak = item["expect"].value("peak_memory_gb", json()); peak.is_number()) return peak;
  }
  for (const Bar& known : published_bars()) {
    if (known.strategy == strategy && known.tokens == tokens) return known.gigabytes;
  }
  throw UsageError(cat("no bar of ", strategy, " at ", tokens, " tokens is published"));
}

/// Lines through the published bars of 16K and 128K.
json slopes(const json& file) {
  constexpr double kFirst = 16384, kLast = 131072;
  json out;
  for (const char* strategy : {"tsp", "tp"}) {
    const double first = bar(file, strategy, kFirst), last = bar(file, strategy, kLast);
    const double slope = (last - first) / (kLast - kFirst);
    out[cat(strategy, "_bytes_per_token")] = slope * kBillion;
    out[cat(strategy, "_intercept_gb")] = first - slope * kFirst;
  }
  return out;
}

std::optional<ReferenceModel> reference_model(const json& file) {
  const json model = file.is_object() ? file.value("model", json()) : json();
  const bool is_other = !model.is_object() || !model.contains("hidden") || model.contains("full_attention_every");
  if (is_other) return std::nullopt;
  return ReferenceModel{static_cast<double>(count(model, "hidden")), static_cast<double>(count(model, "layers"))};
}

}  // namespace

Answer strategy_answer(const json& file) {
  return [&file, model = reference_model(file)](const json& item) -> json {
    const json &input = item["input"], &expect = item["expect"];
    if (expect.contains("full_recompute_both_fused_over_h")) return crossover(input);
    if (expect.contains("tokens_over_h")) return crossover_of_both(input);
    if (expect.contains("min_tokens_per_rank_mlp_ring_forward")) return overlap(input);
    if (expect.contains("contiguous_work")) return zigzag(input);
    if (expect.contains("tsp_bytes_per_token")) return slopes(file);
    const bool needs_model = expect.contains("forward_elements") || expect.contains("state_bytes_s16") ||
                             expect.contains("causal_attention_part");
    if (!needs_model) return {};
    if (!model) throw UsageError("the file has no \"model\" with hidden and layers");
    if (expect.contains("forward_elements")) return traffic(input, *model);
    return expect.contains("state_bytes_s16") ? memory(input, *model) : flops(input, *model);
  };
}

}  // namespace octavo
