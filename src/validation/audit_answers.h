// What golden audits of a hybrid model ask: one answer per kind of case.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/misfit.h"
#include "octavo/plan/audit_dimensions.h"
#include "validation/golden_case.h"

namespace octavo {

using nlohmann::json;

/// A model with both kinds of layers, and its table.
struct Audit {
  explicit Audit(ModelSpec spec) : model(std::move(spec)), table(model) {}

  Layout tensor(std::int64_t degree, const std::string& misfit = "replicate") const {
    return parse_layout(cat("tensor=", degree, ":", misfit));
  }

  const LayerSpec& attention_layer() const { return layer_with<AttentionSpec>(); }
  const LayerSpec& recurrent_layer() const { return layer_with<DeltaNetSpec>(); }
  const AttentionSpec& attention() const { return std::get<AttentionSpec>(attention_layer().mixer); }
  const DeltaNetSpec& delta_net() const { return std::get<DeltaNetSpec>(recurrent_layer().mixer); }
  std::int64_t num_attention() const { return find_dimension(audit_dimensions(model), "full_attention_layers").size; }
  std::int64_t num_recurrent() const { return static_cast<std::int64_t>(model.layers.size()) - num_attention(); }

  /// The first block of a kind.
  const BlockLayout& block(BlockKind kind) const {
    for (const BlockLayout& each : table.blocks()) {
      if (each.kind == kind) return each;
    }
    throw UsageError("the model has no block of that kind");
  }

  /// The first parameter whose name ends so.
  const Parameter& parameter(const std::string& ending) const {
    for (const Parameter& each : table.parameters()) {
      if (each.name.ends_with(ending)) return each;
    }
    throw UsageError("the model has no parameter " + ending);
  }

  ModelSpec model;
  ParamTable table;

 private:
  template <class Spec>
  const LayerSpec& layer_with() const {
    for (const LayerSpec& layer : model.layers) {
      if (std::holds_alternative<Spec>(layer.mixer)) return layer;
    }
    throw UsageError("the model has no layer of that kind");
  }
};

using AuditAnswer = std::function<json(const Audit&, const json& input, const json& expect)>;

/// By a key that only this kind of case expects. The first: sizes, slices, bytes. The second: layers and stages.
std::map<std::string, AuditAnswer> audit_size_answers();
std::map<std::string, AuditAnswer> audit_stage_answers();

std::string status_name(TensorFit::Status status);

/// What a case takes for granted. Throws UsageError if it is not so.
inline void require(bool holds) {
  if (!holds) throw UsageError("the case takes for granted what this model or formula has not");
}

}  // namespace octavo
