#include "plan/layer_time.h"

#include <cmath>
#include <utility>

namespace octavo {
namespace {

/// A matmul of a shard: under fold by weights as many of them as ranks, of fewer rows and less width each.
double shard_seconds(const MatmulShape& matmul, double in, double out, const RankShare& share, bool by_weights,
                     const Speeds& speeds, const TimeRules& rules) {
  const double steps = by_weights && matmul.cut != MatmulShape::Cut::Nothing ? share.fold : 1;
  const double rows = by_weights ? share.local_tokens : share.tokens;
  if (matmul.cut == MatmulShape::Cut::In) in /= steps;
  if (matmul.cut == MatmulShape::Cut::Out) out /= steps;
  return steps * matmul_seconds(rows, in, out, speeds, rules);
}

/// Its sides on a rank.
std::pair<double, double> mixer_shape(const MatmulShape& matmul, const RankShare& share) {
  switch (matmul.cut) {
    case MatmulShape::Cut::Nothing:
      return {matmul.in, matmul.out};
    case MatmulShape::Cut::In:
      return {matmul.in * share.queries, matmul.out};
    case MatmulShape::Cut::Out:
      return {matmul.in, (matmul.out - matmul.key_out) * share.queries + matmul.key_out * share.keys};
  }
  return {0, 0};
}

}  // namespace

double matmul_seconds(double rows, double in, double out, const Speeds& speeds, const TimeRules& rules) {
  return 2 * rows * in * out / speeds.matmul + (rows * in + in * out + rows * out) * speeds.element / speeds.memory +
         rules.matmul_latency;
}

void Traffic::add(const CollectiveTimes& group, int num_ranks, Collective kind, double message, double times) {
  if (num_ranks <= 1 || message <= 0) return;
  const auto size = static_cast<Bytes>(std::llround(message));
  const CollectiveTime time = group.fastest(kind, size);
  seconds += times * time.seconds;
  bytes += times * static_cast<double>(collective_cost(kind, Algorithm::Ring, num_ranks, size).sent);
  if (size > largest) {
    largest = size;
    algorithm = time.algorithm;
  }
}

void Traffic::add(const Traffic& other) {
  seconds += other.seconds;
  bytes += other.bytes;
  if (other.largest > largest) {
    largest = other.largest;
    algorithm = other.algorithm;
  }
}

HeldElements held_elements(const LayerWork& work, const RankShare& share) {
  HeldElements held;
  for (const MatmulShape& matmul : work.mixer) {
    const auto [in, out] = mixer_shape(matmul, share);
    held.mixer += in * out;
  }
  for (const MatmulShape& matmul : work.ffn) {
    held.ffn += matmul.in * matmul.out * (matmul.cut == MatmulShape::Cut::Nothing ? 1 : share.features);
  }
  held.experts = work.expert_elements * share.experts / share.expert;
  return held;
}

PassTime mixer_pass(const LayerWork& work, const RankShare& share, const Speeds& speeds, const TimeRules& rules,
                    double hidden, bool by_weights) {
  PassTime pass;
  for (const MatmulShape& matmul : work.mixer) {
    const auto [in, out] = mixer_shape(matmul, share);
    pass.matmul += shard_seconds(matmul, in, out, share, by_weights, speeds, rules);
  }
  pass.core = work.mixer_core * share.sequences * share.core / speeds.attention;
  pass.memory = rules.hidden_passes / 3 * share.local_tokens * hidden * speeds.element / speeds.memory;
  return pass;
}

PassTime ffn_pass(const LayerWork& work, const RankShare& share, const Speeds& speeds, const TimeRules& rules,
                  double hidden, bool by_weights) {
  PassTime pass;
  for (const MatmulShape& matmul : work.ffn) {
    const double in = matmul.cut == MatmulShape::Cut::In ? matmul.in * share.features : matmul.in;
    const double out = matmul.cut == MatmulShape::Cut::Out ? matmul.out * share.features : matmul.out;
    pass.matmul += shard_seconds(matmul, in, out, share, by_weights, speeds, rules);
  }
  const double rows = by_weights ? share.local_tokens : share.tokens;
  if (work.num_experts > 0) {
    // Tokens spread evenly over experts; those of all expert ranks come to the experts of this one.
    const double experts = work.num_experts * (by_weights ? 1 : share.experts) / share.expert;
    const double expert_rows = rows * work.experts_per_token * share.expert / work.num_experts;
    pass.matmul += experts * (matmul_seconds(expert_rows, work.expert_in.in, work.expert_in.out, speeds, rules) +
                              matmul_seconds(expert_rows, work.expert_out.in, work.expert_out.out, speeds, rules));
    // Dispatch and combine read and write the routed rows.
    pass.memory += 4 * rows * work.experts_per_token * hidden * speeds.element / speeds.memory;
  }
  const double features = by_weights ? work.dense_features + work.routed_features
                                     : work.dense_features * share.features + work.routed_features * share.experts;
  pass.memory += rules.feature_passes / 3 * rows * features * speeds.element / speeds.memory;
  return pass;
}

}  // namespace octavo
