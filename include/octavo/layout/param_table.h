// One table of parameters: what every slab and every checkpoint parameter is, and how the two orders map.
// Planner, engine, optimizer and checkpoint read this table; nobody else computes a shard.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "octavo/layout/block_layout.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// How a parameter starts when a model is trained from scratch (models.md 12).
struct Initializer {
  enum class Kind { Normal, Ones };
  Kind kind;
  double standard_deviation;  // of Normal
};

/// A panel or a common vector as it lies in memory: [rows, width], row-major, in unit order.
struct Slab {
  std::string name;  // "layers.3.attention.qkv"
  int block;         // index into blocks() of the block that owns the memory
  std::int64_t rows, width;
  bool decays;    // weight decay applies: panels yes, vectors no
  bool in_units;  // a common vector that is used inside every unit
  int uses;       // blocks that use it: 2 for a tied embedding

  std::int64_t elements() const { return rows * width; }
};

/// A parameter as the checkpoint names it, and its place in a slab.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;  // in the checkpoint
  int slab;
  std::int64_t unit_rows;      // rows of the slab per unit
  std::int64_t first_row;      // of this parameter within a unit
  std::int64_t rows_per_unit;  // of this parameter
  bool transposed;             // slab rows are checkpoint columns
  Initializer initializer;

  std::int64_t elements() const;
  /// Slab row of checkpoint row `index` (column, if transposed).
  std::int64_t slab_row(std::int64_t index) const {
    return index / rows_per_unit * unit_rows + first_row + index % rows_per_unit;
  }
  /// Rows and columns of the checkpoint matrix; a vector is one row.
  std::int64_t matrix_rows() const { return shape.size() == 2 ? shape[0] : 1; }
  std::int64_t matrix_columns() const { return shape.back(); }
};

class ParamTable {
 public:
  explicit ParamTable(const ModelSpec& model);

  std::span<const BlockLayout> blocks() const { return blocks_; }
  std::span<const Slab> slabs() const { return slabs_; }
  std::span<const Parameter> parameters() const { return parameters_; }  // checkpoint order

  /// The slab behind panel (common) `index` of block `block`. A tied head shares the embedding's.
  int panel_slab(int block, int index) const { return panel_slabs_[block][index]; }
  int common_slab(int block, int index) const { return common_slabs_[block][index]; }
  /// Throws UsageError naming the nearest parameter if there is none of that name.
  const Parameter& parameter(const std::string& name) const;

 private:
  void add_slab(const std::string& name, int block, std::int64_t rows, std::int64_t width, bool decays, bool in_units);
  void add_parameter(Parameter parameter);
  void add_panel(const ModelSpec& model, int block, const PanelLayout& panel);

  std::vector<BlockLayout> blocks_;
  std::vector<Slab> slabs_;
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, std::size_t> by_name_;      // place in parameters_
  std::vector<std::vector<int>> panel_slabs_, common_slabs_;  // [block][index]
};

}  // namespace octavo
