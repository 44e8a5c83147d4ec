#include "octavo/plan/audit_pipeline.h"

#include <algorithm>
#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/flops.h"

namespace octavo {
namespace {

void check_stages(std::int64_t num_units, int num_stages) {
  if (num_stages < 1 || num_stages > num_units) {
    throw UsageError(cat("[plan] ", num_stages, " pipeline stages over ", num_units, " runs of layers; use 1 to ",
                         num_units, " stages"));
  }
}

}  // namespace

std::vector<Interval> even_stages(const ModelSpec& model, int num_stages, std::int64_t unit_layers) {
  const auto num_layers = static_cast<std::int64_t>(model.layers.size());
  internal_check(unit_layers >= 1 && num_layers % unit_layers == 0, "[plan] layers are no multiple of a unit");
  const std::int64_t num_units = num_layers / unit_layers;
  check_stages(num_units, num_stages);
  std::vector<Interval> stages;
  for (int stage = 0; stage < num_stages; ++stage) {
    const Interval units = even_part(num_units, num_stages, stage);
    stages.push_back({units.begin * unit_layers, units.end * unit_layers});
  }
  return stages;
}

std::vector<Interval> optimal_stages(const ModelSpec& model, int num_stages, std::int64_t tokens, bool with_head) {
  const auto num_layers = static_cast<std::int64_t>(model.layers.size());
  check_stages(num_layers, num_stages);
  std::vector<Flops> before(num_layers + 1, 0);  // of the layers before this one
  for (std::int64_t i = 0; i < num_layers; ++i) {
    before[i + 1] = before[i] + layer_flops(model, model.layers[i], tokens, CausalPairs::HalfSquare);
  }
  const Flops head = with_head ? head_flops(model, tokens) : 0;
  // least[i]: the costliest of the stages that hold layers i and beyond, made as cheap as it can be; cut[s][i]: where
  // the first of s such stages then ends.
  std::vector<std::vector<std::int64_t>> cut(num_stages + 1, std::vector<std::int64_t>(num_layers + 1, num_layers));
  std::vector<Flops> least(num_layers + 1);
  for (std::int64_t i = 0; i <= num_layers; ++i) least[i] = before[num_layers] - before[i] + head;
  for (int count = 2; count <= num_stages; ++count) {
    std::vector<Flops> next(num_layers + 1, std::numeric_limits<Flops>::infinity());
    for (std::int64_t begin = 0; begin + count <= num_layers; ++begin) {
      for (std::int64_t end = begin + 1; end + count - 1 <= num_layers; ++end) {
        const Flops most = std::max(before[end] - before[begin], least[end]);
        if (most > next[begin]) continue;
        next[begin] = most;
        cut[count][begin] = end;
      }
    }
    least = std::move(next);
  }
  std::vector<Interval> stages;
  for (std::int64_t begin = 0, count = num_stages; count > 0; --count) {
    stages.push_back({begin, cut[count][begin]});
    begin = stages.back().end;
  }
  return stages;
}

std::vector<StageComposition> compositions(const ModelSpec& model, const std::vector<Interval>& stages) {
  std::vector<StageComposition> result;
  for (const Interval& stage : stages) {
    StageComposition& composition = result.emplace_back();
    for (std::int64_t i = stage.begin; i < stage.end; ++i) {
      const LayerSpec& layer = model.layers[i];
      ++(std::holds_alternative<DeltaNetSpec>(layer.mixer) ? composition.recurrent : composition.attention);
      if (std::holds_alternative<MoeSpec>(layer.ffn)) ++composition.with_experts;
    }
  }
  return result;
}

std::vector<Flops> stage_flops(const ModelSpec& model, const std::vector<Interval>& stages, std::int64_t tokens,
                               bool with_head) {
  std::vector<Flops> costs;
  for (const Interval& stage : stages) {
    Flops cost = 0;
    for (std::int64_t i = stage.begin; i < stage.end; ++i) {
      cost += layer_flops(model, model.layers[i], tokens, CausalPairs::HalfSquare);
    }
    costs.push_back(cost);
  }
  if (with_head) costs.back() += head_flops(model, tokens);
  return costs;
}

StageBalance balance(const std::vector<Flops>& costs) {
  const auto most = std::max_element(costs.begin(), costs.end());
  Flops sum = 0;
  for (const Flops cost : costs) sum += cost;
  return {*most / *std::min_element(costs.begin(), costs.end()), *most * static_cast<double>(costs.size()) / sum,
          static_cast<int>(most - costs.begin())};
}

std::vector<std::int64_t> identical_degrees(const ModelSpec& model, std::int64_t most) {
  std::vector<std::int64_t> degrees;
  const auto num_layers = static_cast<std::int64_t>(model.layers.size());
  for (std::int64_t degree = 2; degree <= std::min(most, num_layers); ++degree) {
    if (num_layers % degree != 0) continue;
    const auto stages = compositions(model, even_stages(model, static_cast<int>(degree), 1));
    if (std::all_of(stages.begin(), stages.end(), [&](const auto& stage) { return stage == stages.front(); })) {
      degrees.push_back(degree);
    }
  }
  return degrees;
}

}  // namespace octavo
