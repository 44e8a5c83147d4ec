// Follows one stage's training step in its order and meters what the engine has in memory. What each function takes
// and gives, and when, is what blocks/, ops/ and parallel/ do; see there for why.
#pragma once

#include "plan/memory_meter.h"
#include "plan/step_numbers.h"

namespace octavo {

class StepMemory {
 public:
  StepMemory(const StepNumbers& numbers, int stage) : n_(numbers), stage_(stage) {}

  MemoryEstimate run();

 private:
  /// One step of an attention block.
  struct Heads {
    std::int64_t kv_heads, tokens;
    bool exchanges, keeps_graph;
    Bytes query, key, statistics;           // queries; keys or values; log-sum-exps
    Bytes arriving, gathered;               // keys and values of all ranks, on the wire and in order
    Bytes gradients, returning;             // of keys and values of all ranks, likewise
    Bytes swapped;                          // under ulysses
    Bytes product;                          // of the projection
    Bytes extra;                            // kept beside it
    std::int64_t query_elements, elements;  // of the out panel; of the qkv panel
    Bytes forward_scratch, backward_scratch;

    Bytes projection() const { return query + 2 * key; }  // as it is used
  };

  // step_memory.cpp: the order of the step
  void take_state();
  void take_other_micro_batches();
  void take_batch();
  void run_layers_forward();
  void run_layers_backward();
  void forward(const LayerSizes& sizes, const LayerNumbers& layer);
  void backward(const LayerSizes& sizes, const LayerNumbers& layer);
  Bytes kept_by(int first_layer, int end_layer);
  Bytes batch_bytes() const;
  void embed();
  void embed_backward();
  void loss();
  void loss_in_one_step(Bytes chunk, std::int64_t chunk_tokens);
  void loss_by_steps(Bytes chunk);
  void sum_partial_gradients();
  void gather_weights(std::int64_t elements);
  std::int64_t in_flight() const;
  std::int64_t largest_layer() const;

  // exchange_memory.cpp: tokens between ranks
  bool is_gathered(const BlockPass& pass) const { return pass.brings_tokens || n_.scatters; }
  Bytes gathered_bytes(const BlockPass& pass) const;
  Bytes gather(const BlockPass& pass, bool attention, MemoryPart part);
  void sum(const BlockPass& pass, bool attention);

  // attention_memory.cpp, mlp_memory.cpp
  Heads heads(const LayerSizes& sizes, const LayerNumbers& layer, const BlockPass& pass, std::int64_t kv_heads,
              bool keeps_graph) const;
  /// Of each step of a pass: early ones may have one KV head more.
  struct StepHeads {
    Heads early, late;
    std::int64_t num_early;
    const Heads& operator()(std::int64_t step) const { return step < num_early ? early : late; }
  };
  StepHeads step_heads(const LayerSizes& sizes, const LayerNumbers& layer, const BlockPass& pass,
                       bool keeps_graph) const;
  void project(const LayerSizes& sizes, const Heads& heads, bool again);
  void mix(const Heads& heads, bool again);
  void backward_mix(const Heads& heads, bool gathers, bool sends);
  void backward_project(const LayerSizes& sizes, const Heads& heads, bool first, bool sends);
  void attention_forward(const LayerSizes& sizes, const LayerNumbers& layer);
  void attention_backward(const LayerSizes& sizes, const LayerNumbers& layer, bool owns_first);
  void mlp_forward(const LayerSizes& sizes, const LayerNumbers& layer);
  void mlp_backward(const LayerSizes& sizes, const LayerNumbers& layer);
  /// Rows of the tokens of experts, and what the router says of them.
  Bytes dispatched(const LayerSizes& sizes, const BlockPass& pass) const;
  /// Calls step(i) for the steps of a pass, but for those in the middle of many with as many units each: what they
  /// leave behind is that of the one before, so that the first or the last has the peak.
  template <class Step>
  void run_steps(const BlockPass& pass, const Step& step) {
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      std::int64_t next = begin;
      while (next < end) {
        const std::int64_t alike = next == begin + 3 ? end - 2 - next : 0;  // gradients arrive two steps later
        if (alike > 0) {
          meter_.repeat([&] { step(next); }, alike);
          next += alike + 1;
        } else {
          step(next++);
        }
      }
    };
    const std::int64_t num_early = pass.units % pass.steps;
    run(0, num_early);
    run(num_early, pass.steps);
  }
  /// The normed input of a block, before and after its steps.
  void begin_forward(const BlockPass& pass, bool attention);
  void end_forward(const BlockPass& pass, bool attention);
  Bytes begin_backward(const BlockPass& pass, bool attention);  // what the output's gradient takes
  void end_backward(const BlockPass& pass, bool attention, Bytes gathered_gradient);

  /// A gradient that is added up: where it travels it takes memory, and so does the product where types differ.
  void add_product(std::int64_t elements, bool sends);
  void send(std::int64_t elements) { sent_now_ += elements * n_.sum; }
  /// Gradients sent by the step before the last have arrived (parallel/fold/gradient_returns.h).
  void begin_returns();
  /// Foreign rows of units that several ranks store.
  Bytes foreign_rows(const BlockPass& pass, std::int64_t elements_per_unit, bool backward) const;

  Bytes between() const { return n_.activation(n_.between); }
  Bytes statistics() const { return n_.between * n_.statistic; }

  const StepNumbers& n_;
  const int stage_;
  int first_layer_ = 0, end_layer_ = 0;
  int first_followed_ = 0;  // layer
  MemoryMeter meter_;
  Bytes sent_now_ = 0, sent_before_ = 0;
  Bytes gathered_weights_ = 0;  // under ZeRO 3
  Bytes kept_ = 0;              // by the layers that are not followed
};

}  // namespace octavo
