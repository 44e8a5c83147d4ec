#include "octavo/layout/param_table.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo {

std::int64_t Parameter::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::int64_t Parameter::slab_row(std::int64_t index) const {
  for (const ParameterPiece& piece : pieces) {
    const std::int64_t offset = index - piece.first_row;
    if (offset < 0) continue;
    const std::int64_t unit = offset / piece.stride, row = offset % piece.stride;
    if (unit < piece.num_units && row < piece.rows_per_unit) {
      return (piece.first_unit + unit) * piece.unit_rows + piece.slab_row + row;
    }
  }
  throw InternalError(cat("[layout] ", name, " has no row ", index));
}

namespace {

bool ends_with_one_of(const std::string& name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
}

Initializer initializer_of(const ModelSpec& model, const ParameterSpec& parameter) {
  using Kind = Initializer::Kind;
  if (ends_with_one_of(parameter.name, {"linear_attn.conv1d.weight"})) {
    return {Kind::Uniform, 1 / std::sqrt(static_cast<double>(parameter.shape.back()))};  // torch's own, by its fan-in
  }
  if (ends_with_one_of(parameter.name, {"linear_attn.A_log"})) return {Kind::LogUniform, 16};
  if (ends_with_one_of(parameter.name, {"linear_attn.dt_bias"})) return {Kind::InverseStep, 0};
  if (parameter.shape.size() > 1) return {Kind::Normal, model.initializer_range};
  const bool is_plain = ends_with_one_of(parameter.name, {"linear_attn.norm.weight"});
  return {model.zero_centred_norms && !is_plain ? Kind::Zeros : Kind::Ones, 0};
}

}  // namespace

ParamTable::ParamTable(const ModelSpec& model) : blocks_(block_layouts(model)) {
  panel_slabs_.resize(blocks_.size());
  common_slabs_.resize(blocks_.size());
  for (int b = 0; b < static_cast<int>(blocks_.size()); ++b) {
    for (const PanelLayout& panel : blocks_[b].panels) add_panel(b, panel);
    for (const CommonLayout& common : blocks_[b].commons) add_common(b, common);
  }
  // The rest of the program lists parameters as checkpoints do.
  std::vector<Parameter> ordered;
  for (const ParameterSpec& wanted : octavo::parameters(model)) {
    const auto found = by_name_.find(wanted.name);
    internal_check(found != by_name_.end(), "[layout] " + wanted.name + ": no panel holds it");
    Parameter& parameter = ordered.emplace_back(std::move(parameters_[found->second]));
    parameter.shape = wanted.shape;
    parameter.initializer = initializer_of(model, wanted);
    const Slab& slab = slabs_[parameter.slab];
    std::int64_t rows = 0;
    for (const ParameterPiece& piece : parameter.pieces) rows += piece.num_units * piece.rows_per_unit;
    internal_check(rows * slab.width == parameter.elements() &&
                       (parameter.transposed ? parameter.matrix_rows() : parameter.matrix_columns()) == slab.width,
                   "[layout] " + wanted.name + ": panel and spec disagree");
  }
  internal_check(ordered.size() == parameters_.size(), "[layout] panels and spec list different parameters");
  parameters_ = std::move(ordered);
  for (std::size_t i = 0; i < parameters_.size(); ++i) by_name_[parameters_[i].name] = i;
}

void ParamTable::add_panel(int block, const PanelLayout& panel) {
  // A parameter that an earlier block holds is shared, not stored twice.
  if (const auto shared = by_name_.find(panel.sections.front().parameter); shared != by_name_.end()) {
    const int slab = parameters_[shared->second].slab;
    panel_slabs_[block].push_back(slab);
    ++slabs_[slab].uses;
    return;
  }
  const int slab = static_cast<int>(slabs_.size());
  const std::int64_t units = blocks_[block].num_units, unit_rows = panel.rows_per_unit();
  panel_slabs_[block].push_back(slab);
  slabs_.push_back({.name = cat(blocks_[block].name, ".", panel.name),
                    .block = block,
                    .rows = units * unit_rows,
                    .width = panel.width,
                    .decays = panel.decays,
                    .in_units = true,
                    .is_common = false,
                    .float32 = panel.float32,
                    .uses = 1});
  std::int64_t slab_row = 0;
  for (const PanelSection& section : panel.sections) {
    const std::int64_t num_parameters = section.is_per_unit() ? units : 1, units_each = units / num_parameters;
    for (std::int64_t unit = 0; unit < num_parameters; ++unit) {
      Parameter& parameter = find_or_add(section.parameter_of(unit), slab, panel.transposed);
      parameter.is_column = panel.width == 1;
      parameter.pieces.push_back({.first_row = section.first_row,
                                  .stride = section.unit_stride(),
                                  .rows_per_unit = section.rows_per_unit,
                                  .first_unit = unit,
                                  .num_units = units_each,
                                  .unit_rows = unit_rows,
                                  .slab_row = slab_row});
    }
    slab_row += section.rows_per_unit;
  }
}

void ParamTable::add_common(int block, const CommonLayout& common) {
  const int slab = static_cast<int>(slabs_.size());
  common_slabs_[block].push_back(slab);
  slabs_.push_back({.name = cat(blocks_[block].name, ".", common.name),
                    .block = block,
                    .rows = common.rows,
                    .width = common.size,
                    .decays = common.decays,
                    .in_units = common.in_units,
                    .is_common = true,
                    .float32 = common.float32,
                    .uses = 1});
  Parameter& parameter = find_or_add(common.parameter, slab, /*transposed=*/false);
  parameter.pieces.push_back({.first_row = 0,
                              .stride = common.rows,
                              .rows_per_unit = common.rows,
                              .first_unit = 0,
                              .num_units = 1,
                              .unit_rows = common.rows,
                              .slab_row = 0});
}

const Parameter& ParamTable::parameter(const std::string& name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return parameters_[found->second];
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  throw UsageError(cat("[layout] no parameter is named ", name, "; the nearest is ", nearest(name, names)));
}

Parameter& ParamTable::find_or_add(const std::string& name, int slab, bool transposed) {
  const auto [found, is_new] = by_name_.emplace(name, parameters_.size());
  if (is_new) {
    parameters_.push_back({.name = name,
                           .shape = {},
                           .slab = slab,
                           .pieces = {},
                           .transposed = transposed,
                           .is_column = false,
                           .initializer = {Initializer::Kind::Ones, 0}});
  }
  internal_check(parameters_[found->second].slab == slab, "[layout] " + name + " lies in two panels");
  return parameters_[found->second];
}

}  // namespace octavo
