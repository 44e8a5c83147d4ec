// What a block is made of: its units, and the panels that hold its matrices in unit order, so that a range of units is
// one contiguous matrix per panel. Names and orders are those of Hugging Face checkpoints (spec/parameters.cpp lists
// them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/spec/model_spec.h"

namespace octavo {

enum class BlockKind { Embedding, Attention, GatedMlp, Head };

/// One checkpoint matrix inside a panel: `rows_per_unit` consecutive rows (columns, if the panel is transposed) of it
/// belong to each unit.
struct PanelSection {
  std::string parameter;  // name in the checkpoint
  std::int64_t rows_per_unit;
  bool by_part = false;  // the rows are the parts' own, one after another; else the parts of a unit share them
};

/// The two halves of what a block computes of some units: between them tokens may meet tokens (blocks/block.h).
enum class Half { Project, Mix };

/// A matrix [num_units * rows_per_unit(), width]; within a unit the sections follow one another.
struct PanelLayout {
  std::string name;    // "qkv"
  Half half;           // that reads it
  std::int64_t width;  // columns
  bool transposed;     // true: the checkpoint stores [width, rows], as o_proj and down_proj
  std::vector<PanelSection> sections;

  std::int64_t rows_per_unit() const;
};

/// A vector that all units share: a norm's weight.
struct CommonLayout {
  std::string name;       // "norm"
  std::string parameter;  // name in the checkpoint
  std::int64_t size;
  bool in_units = false;  // used inside every unit, as q_norm; else before the units, in the prologue
};

struct BlockLayout {
  std::string name;  // "layers.3.attention"
  BlockKind kind;
  std::int64_t num_units;       // KV heads, features, vocabulary rows
  std::int64_t parts_per_unit;  // equal parts that a unit consists of: the query heads of a KV head; else 1
  std::vector<PanelLayout> panels;
  std::vector<CommonLayout> commons;
};

/// What a kind is called: "embedding", "attention", "MLP", "head".
std::string_view kind_name(BlockKind kind);
/// What the units of a block are called: "KV heads".
std::string_view unit_name(BlockKind kind);

/// The panels and commons of each kind, in order; blocks name them by these.
namespace attention_panels {
inline constexpr int kQkv = 0, kOut = 1;                 // panels
inline constexpr int kNorm = 0, kQNorm = 1, kKNorm = 2;  // commons; the last two only with qk_norm
}  // namespace attention_panels
namespace mlp_panels {
inline constexpr int kGate = 0, kUp = 1, kDown = 2;
inline constexpr int kNorm = 0;
}  // namespace mlp_panels
namespace vocabulary_panels {
inline constexpr int kRows = 0;  // of embedding and head
inline constexpr int kNorm = 0;  // common of the head: the final norm
}  // namespace vocabulary_panels

/// The blocks of a model in the order in which they run: embedding, then mixer and MLP of each layer, then the head
/// (final norm and output matrix). A tied head's panel names the embedding's parameter.
std::vector<BlockLayout> block_layouts(const ModelSpec& model);

}  // namespace octavo
