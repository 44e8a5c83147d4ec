// One layer of softmax attention and a gated MLP under one axis or two, in closed form: what each strategy sends,
// holds and computes, and at how many tokens folding sends no more than another. The analysis of arXiv 2604.26294
// (TSP), its volumes derived again; tests/data/golden/tsp_reference.json holds the figures.
//
// Letters
//   D         ranks of the strategy; T x S = D where it has a tensor and a sequence axis; c_n = (n-1)/n
//   N         tokens of a micro-batch, of all its sequences; l those of one sequence
//   h, q, k   hidden size, rows of all queries, rows of all keys; f features
//   W         2 q h + 2 k h + 3 f h, elements of the layer's matrices; A = N h, one activation
//   a         4 h + 2 q + 2 k + 3 f, elements kept per token: x, norm, Q, K, V, output, x in the middle, norm, gate,
//             up, product; the log-sum-exp is not among them
//
// Elements that a rank sends, in the mean over the ranks:
//                     forward                            backward (no recompute)           once a step
//   data              0                                  0                                 2 c W
//   tensor            4 c A                              4 c A                             0
//   tensor scatter    4 c A                              4 c A (+ 2 c A, inputs again)     0
//   sequence gather   2 c N k                            4 c N k                           2 c W
//   sequence ring     2 c N k                            2 c N k + 2 N k                   2 c W
//   sequence ulysses  c N (2 q + 2 k) / D                the same                          2 c W
//   tensor sequence   4 c_T A / S + 2 c_S N k / T        4 c_T A / S + 4 c_S N k / T       2 c_S W / T
//                                                        (+ 2 c_T A / S, inputs again)
//   fold by weights   c W + 2 c N k                      2 c W + 4 c N k                   0
// "inputs again": what a rank sends more where it keeps its own part of a gathered input and gathers it in backward.
//
// Elements that a rank holds of one layer; data ranks have whole sequences, N / D tokens:
//                     parameters   kept whole                  kept of inputs alone
//   data, sequence    W            N a / D                     N h / D
//   tensor            W / T        N (4 h + (a - 4 h) / T)     N h
//   tensor scatter    W / T        N a / T                     N h / T
//   tensor sequence   W / T        N (4 h + (a - 4 h) / T) / S N h / S
//   fold              W / D        N a / D                     N h / D
//
// FLOPs of a rank, forward, whatever the strategy: 2 N W / D, and for causal attention 2 N l q / D. Backward takes
// twice these.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "octavo/base/units.h"
#include "octavo/layout/token_spans.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

enum class Strategy {
  Data,
  Tensor,
  TensorScatter,
  SequenceGather,
  SequenceRing,
  SequenceUlysses,
  TensorSequence,  // all-reduce; keys and values gathered
  Fold,            // weights to the tokens
};
inline constexpr int kNumStrategies = 8;

/// "data", "tensor", "tensor scatter", ...: as in the table above.
std::string_view strategy_title(Strategy strategy);

/// A strategy and its ranks. tensor x sequence is D; tensor is 1 but under the three tensor strategies, sequence is 1
/// under Tensor and TensorScatter. Of Data, Sequence* and Fold, D is `sequence`.
struct StrategyRanks {
  Strategy strategy;
  int tensor = 1, sequence = 1;
  int all() const { return tensor * sequence; }
};

/// Any strategy but TensorSequence over D ranks.
StrategyRanks on_ranks(Strategy strategy, int ranks);

struct StrategyLayer {
  double hidden = 0, query_rows = 0, key_rows = 0, features = 0;
  double parameters() const;      // W
  double kept_per_token() const;  // a
};

/// Of the first layer with softmax attention and a gated MLP; nullopt where there is none (experts, latent attention).
std::optional<StrategyLayer> strategy_layer(const ModelSpec& model);

/// In elements; fractions, where the mean over ranks is one.
struct StrategyTraffic {
  double forward = 0, backward = 0, inputs_again = 0, once_a_step = 0;
};
StrategyTraffic strategy_traffic(const StrategyLayer& layer, const StrategyRanks& ranks, double tokens);

/// In elements. What is on its way beside what is held, where the strategy has it: keys and values of all tokens (of
/// all heads under sequence gather, of those of T ranks' share under tensor sequence, of one shard under fold), and
/// under fold two shards of the MLP.
struct StrategyMemory {
  double parameters = 0, kept = 0, kept_inputs = 0;
  std::optional<double> gathered_keys_values, shard_pair;
};
StrategyMemory strategy_memory(const StrategyLayer& layer, const StrategyRanks& ranks, double tokens);

/// Forward, of a rank of D.
struct StrategyFlops {
  Flops linear = 0, attention = 0;
};
StrategyFlops strategy_flops(const StrategyLayer& layer, int ranks, double tokens, double sequence_length);

/// From how many tokens N on folding sends no more than tensor parallelism of the same D; nullopt: never.
struct FoldCrossover {
  std::optional<double> forward;         // W / (4 h - 2 k)
  std::optional<double> training;        // forward and backward: 3 W / (8 h - 6 k)
  std::optional<double> training_again;  // against scatter that gathers its inputs again: 3 W / (10 h - 6 k)
  std::optional<double> with_recompute;  // all recomputed, fold in its backward trip: 3 W / (12 h - 6 k)
};
FoldCrossover fold_crossover(const StrategyLayer& layer);

/// The same, forward, against tensor x sequence of the same D, T > 1: (D-1) W / ((T-1) (4 h - 2 S k)).
std::optional<double> fold_crossover(const StrategyLayer& layer, int tensor, int sequence);

/// The same against any strategy of the same D, for all that is sent: forward, backward and once a step. 0: always,
/// nullopt: never.
std::optional<double> fold_crossover_of_step(const StrategyLayer& layer, const StrategyRanks& ranks);

/// From how many tokens per rank on the MLP's hops round the fold hide behind its matmuls, at a rate in FLOP/s and a
/// link in bytes/s each way: e rate / (2 link), in backward (e + g) rate / (4 link); e and g bytes of an element of the
/// weights and of their gradients.
double tokens_that_hide_hops(double rate, double link, double weight_bytes);
double tokens_that_hide_hops_backward(double rate, double link, double weight_bytes, double gradient_bytes);

/// Pairs of a chunk of queries and one of keys that an index of a cut works on under a causal mask; the diagonal counts
/// as one.
std::int64_t chunk_pairs(const TokenCut& cut, int index);

}  // namespace octavo
