#include "octavo/layout/param_table.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::int64_t Parameter::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

ParamTable::ParamTable(const ModelSpec& model) : blocks_(block_layouts(model)) {
  panel_slabs_.resize(blocks_.size());
  common_slabs_.resize(blocks_.size());
  for (int b = 0; b < static_cast<int>(blocks_.size()); ++b) {
    for (const PanelLayout& panel : blocks_[b].panels) add_panel(model, b, panel);
    for (const CommonLayout& common : blocks_[b].commons) {
      common_slabs_[b].push_back(static_cast<int>(slabs_.size()));
      add_parameter({common.parameter,
                     {common.size},
                     static_cast<int>(slabs_.size()),
                     1,
                     0,
                     1,
                     false,
                     {Initializer::Kind::Ones, 0}});
      add_slab(cat(blocks_[b].name, ".", common.name), b, 1, common.size, /*decays=*/false, common.in_units);
    }
  }
  // The rest of the program lists parameters as checkpoints do.
  std::vector<Parameter> ordered;
  for (const ParameterSpec& wanted : octavo::parameters(model)) {
    ordered.push_back(parameter(wanted.name));
    internal_check(ordered.back().shape == wanted.shape, "[layout] " + wanted.name + ": panel and spec disagree");
  }
  internal_check(ordered.size() == parameters_.size(), "[layout] panels and spec list different parameters");
  parameters_ = std::move(ordered);
  for (std::size_t i = 0; i < parameters_.size(); ++i) by_name_[parameters_[i].name] = i;
}

void ParamTable::add_slab(const std::string& name, int block, std::int64_t rows, std::int64_t width, bool decays,
                          bool in_units) {
  slabs_.push_back({name, block, rows, width, decays, in_units, 1});
}

void ParamTable::add_panel(const ModelSpec& model, int block, const PanelLayout& panel) {
  // A parameter that an earlier block holds is shared, not stored twice.
  if (const auto shared = by_name_.find(panel.sections.front().parameter); shared != by_name_.end()) {
    const int slab = parameters_[shared->second].slab;
    panel_slabs_[block].push_back(slab);
    ++slabs_[slab].uses;
    return;
  }
  const int slab = static_cast<int>(slabs_.size());
  const std::int64_t units = blocks_[block].num_units;
  panel_slabs_[block].push_back(slab);
  add_slab(cat(blocks_[block].name, ".", panel.name), block, units * panel.rows_per_unit(), panel.width,
           /*decays=*/true, /*in_units=*/true);
  std::int64_t first_row = 0;
  for (const PanelSection& section : panel.sections) {
    const std::int64_t rows = units * section.rows_per_unit;
    std::vector<std::int64_t> shape = {rows, panel.width};
    if (panel.transposed) std::swap(shape[0], shape[1]);
    add_parameter({section.parameter,
                   shape,
                   slab,
                   panel.rows_per_unit(),
                   first_row,
                   section.rows_per_unit,
                   panel.transposed,
                   {Initializer::Kind::Normal, model.initializer_range}});
    first_row += section.rows_per_unit;
  }
}

const Parameter& ParamTable::parameter(const std::string& name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return parameters_[found->second];
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  throw UsageError(cat("[layout] no parameter is named ", name, "; the nearest is ", nearest(name, names)));
}

void ParamTable::add_parameter(Parameter parameter) {
  by_name_.emplace(parameter.name, parameters_.size());
  parameters_.push_back(std::move(parameter));
}

}  // namespace octavo
