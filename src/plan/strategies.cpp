#include "octavo/plan/strategies.h"

#include "octavo/base/error.h"

namespace octavo {
namespace {

/// (n-1)/n: the share of a message that a rank of n sends.
double share(int ranks) {
  return (ranks - 1.0) / ranks;
}

std::optional<double> where_level(double volume, double saved_per_token) {
  if (saved_per_token <= 0) return std::nullopt;
  return volume / saved_per_token;
}

}  // namespace

std::string_view strategy_title(Strategy strategy) {
  switch (strategy) {
    case Strategy::Data:
      return "data";
    case Strategy::Tensor:
      return "tensor";
    case Strategy::TensorScatter:
      return "tensor scatter";
    case Strategy::SequenceGather:
      return "sequence gather";
    case Strategy::SequenceRing:
      return "sequence ring";
    case Strategy::SequenceUlysses:
      return "sequence ulysses";
    case Strategy::TensorSequence:
      return "tensor sequence";
    case Strategy::Fold:
      return "fold";
  }
  throw InternalError("[plan] a strategy without a title");
}

StrategyRanks on_ranks(Strategy strategy, int ranks) {
  const bool is_tensor = strategy == Strategy::Tensor || strategy == Strategy::TensorScatter;
  return is_tensor ? StrategyRanks{strategy, ranks, 1} : StrategyRanks{strategy, 1, ranks};
}

double StrategyLayer::parameters() const {
  return hidden * (2 * query_rows + 2 * key_rows + 3 * features);
}

double StrategyLayer::kept_per_token() const {
  return 4 * hidden + 2 * query_rows + 2 * key_rows + 3 * features;
}

std::optional<StrategyLayer> strategy_layer(const ModelSpec& model) {
  for (const LayerSpec& layer : model.layers) {
    const auto* attention = std::get_if<AttentionSpec>(&layer.mixer);
    const auto* mlp = std::get_if<GatedMlpSpec>(&layer.ffn);
    if (attention == nullptr || mlp == nullptr || attention->output_gate) continue;
    const auto rows = [&](std::int64_t heads) { return static_cast<double>(heads * attention->head_dim); };
    return StrategyLayer{static_cast<double>(model.hidden_size), rows(attention->num_heads),
                         rows(attention->num_kv_heads), static_cast<double>(mlp->num_features)};
  }
  return std::nullopt;
}

StrategyTraffic strategy_traffic(const StrategyLayer& layer, const StrategyRanks& ranks, double tokens) {
  const double weights = layer.parameters(), keys_values = 2 * tokens * layer.key_rows;
  const double activation = tokens * layer.hidden, part = share(ranks.all());
  const double sums = 4 * share(ranks.tensor) * activation / ranks.sequence;
  switch (ranks.strategy) {
    case Strategy::Data:
      return {.once_a_step = 2 * part * weights};
    case Strategy::Tensor:
      return {.forward = sums, .backward = sums};
    case Strategy::TensorScatter:
      return {.forward = sums, .backward = sums, .inputs_again = sums / 2};
    case Strategy::SequenceGather:
      return {.forward = part * keys_values, .backward = 2 * part * keys_values, .once_a_step = 2 * part * weights};
    case Strategy::SequenceRing:  // the gradients go all the way round
      return {.forward = part * keys_values,
              .backward = part * keys_values + keys_values,
              .once_a_step = 2 * part * weights};
    case Strategy::SequenceUlysses: {
      const double heads = part * (2 * tokens * layer.query_rows + keys_values) / ranks.all();
      return {.forward = heads, .backward = heads, .once_a_step = 2 * part * weights};
    }
    case Strategy::TensorSequence: {
      const double gathered = share(ranks.sequence) * keys_values / ranks.tensor;
      return {.forward = sums + gathered,
              .backward = sums + 2 * gathered,
              .inputs_again = sums / 2,
              .once_a_step = 2 * share(ranks.sequence) * weights / ranks.tensor};
    }
    case Strategy::Fold:
      return {.forward = part * (weights + keys_values), .backward = 2 * part * (weights + keys_values)};
  }
  throw InternalError("[plan] a strategy without traffic");
}

StrategyMemory strategy_memory(const StrategyLayer& layer, const StrategyRanks& ranks, double tokens) {
  const double weights = layer.parameters(), kept = tokens * layer.kept_per_token(), whole = 4 * layer.hidden * tokens;
  const double activation = tokens * layer.hidden, keys_values = 2 * tokens * layer.key_rows;
  const int all = ranks.all();
  StrategyMemory memory{weights, kept / all, activation / all, {}, {}};
  switch (ranks.strategy) {
    case Strategy::Data:
    case Strategy::SequenceRing:
    case Strategy::SequenceUlysses:
      return memory;
    case Strategy::SequenceGather:
      memory.gathered_keys_values = keys_values;
      return memory;
    case Strategy::TensorScatter:
      memory.parameters = weights / all;
      return memory;
    case Strategy::Tensor:
    case Strategy::TensorSequence:
      memory.parameters = weights / ranks.tensor;
      memory.kept = (whole + (kept - whole) / ranks.tensor) / ranks.sequence;
      memory.kept_inputs = activation / ranks.sequence;
      if (ranks.sequence > 1) memory.gathered_keys_values = keys_values / ranks.tensor;
      return memory;
    case Strategy::Fold:
      memory.parameters = weights / all;
      memory.gathered_keys_values = keys_values / all;
      memory.shard_pair = 2 * 3 * layer.features * layer.hidden / all;
      return memory;
  }
  throw InternalError("[plan] a strategy without memory");
}

StrategyFlops strategy_flops(const StrategyLayer& layer, int ranks, double tokens, double sequence_length) {
  return {2 * tokens * layer.parameters() / ranks, 2 * tokens * sequence_length * layer.query_rows / ranks};
}

FoldCrossover fold_crossover(const StrategyLayer& layer) {
  const double weights = layer.parameters(), h = layer.hidden, k = layer.key_rows;
  return {where_level(weights, 4 * h - 2 * k), where_level(3 * weights, 8 * h - 6 * k),
          where_level(3 * weights, 10 * h - 6 * k), where_level(3 * weights, 12 * h - 6 * k)};
}

std::optional<double> fold_crossover(const StrategyLayer& layer, int tensor, int sequence) {
  return where_level((tensor * sequence - 1) * layer.parameters(),
                     (tensor - 1) * (4 * layer.hidden - 2 * sequence * layer.key_rows));
}

std::optional<double> fold_crossover_of_step(const StrategyLayer& layer, const StrategyRanks& ranks) {
  // What is sent grows by as much with every token.
  const auto sent = [&](const StrategyRanks& of, double tokens) {
    const StrategyTraffic traffic = strategy_traffic(layer, of, tokens);
    return traffic.forward + traffic.backward + traffic.once_a_step;
  };
  const StrategyRanks fold = on_ranks(Strategy::Fold, ranks.all());
  constexpr double kMany = 1 << 20;
  const double more_at_none = sent(fold, 0) - sent(ranks, 0);
  const double less_per_token = (sent(ranks, kMany) - sent(ranks, 0) - sent(fold, kMany) + sent(fold, 0)) / kMany;
  if (more_at_none <= 0) return 0;
  return where_level(more_at_none, less_per_token);
}

double tokens_that_hide_hops(double rate, double link, double weight_bytes) {
  return weight_bytes * rate / (2 * link);
}

double tokens_that_hide_hops_backward(double rate, double link, double weight_bytes, double gradient_bytes) {
  return (weight_bytes + gradient_bytes) * rate / (4 * link);
}

std::int64_t chunk_pairs(const TokenCut& cut, int index) {
  std::int64_t pairs = 0;
  for (const int chunk : cut.chunks(index)) pairs += chunk + 1;
  return pairs;
}

}  // namespace octavo
