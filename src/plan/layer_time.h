// One layer of one micro-batch on one rank: what it computes and what it sends, under a layout.
#pragma once

#include <array>

#include "octavo/plan/collective_time.h"
#include "octavo/plan/time_rules.h"
#include "plan/layer_work.h"

namespace octavo {

/// The accelerator as the rules let it be used.
struct Speeds {
  double matmul;     // FLOP/s
  double attention;  // FLOP/s
  double memory;     // bytes/s
  double element;    // bytes of an element of the compute type
};

/// The layout's part of a layer's arithmetic: what a rank has of each.
struct RankShare {
  double tokens = 0;        // N: of the micro-batch, that the rank's matmuls see; under fold by weights before the cut
  double local_tokens = 0;  // held between blocks
  double sequences = 0;     // of the micro-batch
  double queries = 1, keys = 1;  // of the heads; of keys and values
  double features = 1;           // of the MLP's or the shared expert's features
  double experts = 1;            // of the experts that the ranks of expert leave
  double vocabulary = 1;         // of its rows
  double core = 1;               // of the pairs of query and key
  int tensor = 1, sequence = 1, fold = 1, expert = 1;
};

/// Seconds of one direction.
struct PassTime {
  double matmul = 0, core = 0, memory = 0;
  double sum() const { return matmul + core + memory; }
};

/// Bytes that a rank sends and seconds that takes, and the largest collective's algorithm.
struct Traffic {
  double bytes = 0;
  Seconds seconds = 0;
  Bytes largest = 0;
  Algorithm algorithm = Algorithm::Direct;

  /// `times` collectives of that kind.
  void add(const CollectiveTimes& group, int num_ranks, Collective kind, double message, double times = 1);
  void add(const Traffic& other);
};

/// Elements of a layer's matrices on a rank of tensor and expert; fold cuts them once more.
struct HeldElements {
  double mixer = 0, ffn = 0, experts = 0;
};
HeldElements held_elements(const LayerWork& work, const RankShare& share);

/// Forward of the halves of a layer. `by_weights`: fold brings weights to the tokens.
PassTime mixer_pass(const LayerWork& work, const RankShare& share, const Speeds& speeds, const TimeRules& rules,
                    double hidden, bool by_weights);
PassTime ffn_pass(const LayerWork& work, const RankShare& share, const Speeds& speeds, const TimeRules& rules,
                  double hidden, bool by_weights);

/// [rows, in] x [in, out].
double matmul_seconds(double rows, double in, double out, const Speeds& speeds, const TimeRules& rules);

}  // namespace octavo
