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
  enum class Kind {
    Normal,
    Ones,
    Zeros,        // zero-centred norms
    Uniform,      // in [-scale, scale): a convolution's taps
    LogUniform,   // log of a draw in [1, scale): DeltaNet's decay A
    InverseStep,  // x with softplus(x) = dt, log dt uniform in [log 1e-3, log 0.1]: DeltaNet's step bias
  };
  Kind kind;
  double scale;  // Normal: standard deviation
};

/// A panel or what units share, as it lies in memory: [rows, width], row-major, in unit order.
struct Slab {
  std::string name;  // "layers.3.attention.qkv"
  int block;         // index into blocks() of the block that owns the memory
  std::int64_t rows, width;
  bool decays;     // weight decay applies: matrices yes; vectors, and DeltaNet's decay, no
  bool in_units;   // a panel, or a common vector that is used inside every unit
  bool is_common;  // shared by all units: no unit axis cuts it
  bool float32;    // kept in float32 at least, whatever the model is computed in
  int uses;        // blocks that use it: 2 for a tied embedding

  std::int64_t elements() const { return rows * width; }
};

/// Rows of a checkpoint matrix and their place in a slab: row `first_row + u * stride + r` of the matrix (column, if
/// transposed) is row `(first_unit + u) * unit_rows + slab_row + r` of the slab, for 0 <= u < num_units and
/// 0 <= r < rows_per_unit.
struct ParameterPiece {
  std::int64_t first_row, stride, rows_per_unit;  // of the checkpoint matrix
  std::int64_t first_unit, num_units;
  std::int64_t unit_rows, slab_row;  // of the slab: rows of a unit, and place of this piece within it
};

/// A parameter as the checkpoint names it, and its place in a slab. As a matrix it has matrix_rows() rows of
/// matrix_columns(), whatever dimensions the checkpoint gives it ([E, 2I, H], [channels, 1, taps]); a vector is one
/// row, or a column where its elements are rows of units.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;  // in the checkpoint
  int slab;
  std::vector<ParameterPiece> pieces;  // every row is in exactly one
  bool transposed;                     // slab rows are checkpoint columns
  bool is_column;                      // a vector, of which each element is a row
  Initializer initializer;

  std::int64_t elements() const;
  /// Slab row of checkpoint row `index` (column, if transposed).
  std::int64_t slab_row(std::int64_t index) const;
  std::int64_t matrix_rows() const { return elements() / matrix_columns(); }
  std::int64_t matrix_columns() const { return is_column ? 1 : shape.back(); }
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
  void add_panel(int block, const PanelLayout& panel);
  void add_common(int block, const CommonLayout& common);
  Parameter& find_or_add(const std::string& name, int slab, bool transposed);

  std::vector<BlockLayout> blocks_;
  std::vector<Slab> slabs_;
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, std::size_t> by_name_;      // place in parameters_
  std::vector<std::vector<int>> panel_slabs_, common_slabs_;  // [block][index]
};

}  // namespace octavo
