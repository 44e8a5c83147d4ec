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

enum class BlockKind {
  Embedding,
  Attention,
  DeltaNet,
  GatedMlp,
  Moe,           // the experts; the router is a common
  SharedExpert,  // of the same layer: runs beside the experts, on the tokens that their norm has made
  Head,
};

/// Rows of a checkpoint matrix (columns, if the panel is transposed) inside a panel: of unit u the `rows_per_unit` rows
/// from first_row + u * stride on. A matrix that is cut in sections (q, k and v rows of DeltaNet) is several of these.
struct PanelSection {
  std::string parameter;  // name in the checkpoint; where every unit has its own, "{}" stands for the unit's number
  std::int64_t rows_per_unit;
  bool by_part = false;  // the rows are the parts' own, one after another; else the parts of a unit share them
  std::int64_t first_row = 0;
  std::int64_t stride = 0;  // 0: rows_per_unit

  std::int64_t unit_stride() const { return stride == 0 ? rows_per_unit : stride; }
  bool is_per_unit() const { return parameter.find("{}") != std::string::npos; }
  std::string parameter_of(std::int64_t unit) const;
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
  bool decays = true;    // weight decay applies
  bool float32 = false;  // kept in float32 at least, whatever the model is computed in

  std::int64_t rows_per_unit() const;
};

/// What all units share: a norm's weight; a router, which is a matrix.
struct CommonLayout {
  std::string name;       // "norm"
  std::string parameter;  // name in the checkpoint
  std::int64_t size;      // elements of a row
  bool in_units = false;  // used inside every unit, as q_norm; else before the units, in the prologue
  std::int64_t rows = 1;
  bool decays = false;   // weight decay applies
  bool float32 = false;  // kept in float32 at least, whatever the model is computed in
};

struct BlockLayout {
  std::string name;  // "layers.3.attention"
  BlockKind kind;
  std::int64_t num_units;       // KV heads, key heads, features, experts, vocabulary rows
  std::int64_t parts_per_unit;  // equal parts of a unit: query heads of a KV head, value heads of a key head; else 1
  std::vector<PanelLayout> panels;
  std::vector<CommonLayout> commons;
  std::int64_t units_per_token = 0;  // that a token passes, where a router chooses them; 0: all
};

/// What a kind is called: "embedding", "attention", "DeltaNet", "MLP", "experts", "shared expert", "head".
std::string_view kind_name(BlockKind kind);
/// What the units of a block are called: "KV heads"; and their parts: "query heads".
std::string_view unit_name(BlockKind kind);
std::string_view part_name(BlockKind kind);

/// The panels and commons of each kind, in order; blocks name them by these.
namespace attention_panels {
inline constexpr int kQkv = 0, kOut = 1;                 // panels
inline constexpr int kNorm = 0, kQNorm = 1, kKNorm = 2;  // commons; the last two only with qk_norm
}  // namespace attention_panels
namespace delta_net_panels {
inline constexpr int kIn = 0;     // q, k, v, z, b and a rows of a key head: the order in which Qwen3-Next groups them
inline constexpr int kConv = 1;   // [channels, taps]: q, k and v channels of a key head
inline constexpr int kDecay = 2;  // [rows, 1]: A_log and dt_bias of the value heads of a key head; float32
inline constexpr int kOut = 3;
inline constexpr int kNorm = 0, kOutputNorm = 1;  // commons
}  // namespace delta_net_panels
namespace mlp_panels {  // also of a shared expert, which has no norm of its own but may have a gate
inline constexpr int kGate = 0, kUp = 1, kDown = 2;
inline constexpr int kNorm = 0;
inline constexpr int kSharedGate = 0;
}  // namespace mlp_panels
namespace moe_panels {
inline constexpr int kGateUp = 0;  // gate rows, then up rows of an expert
inline constexpr int kDown = 1;    // hidden rows of an expert, as wide as its features
inline constexpr int kNorm = 0, kRouter = 1;
}  // namespace moe_panels
namespace vocabulary_panels {
inline constexpr int kRows = 0;  // of embedding and head
inline constexpr int kNorm = 0;  // common of the head: the final norm
}  // namespace vocabulary_panels

/// The blocks of a model in the order in which they run: embedding, then mixer and feed-forward part of each layer,
/// then the head (final norm and output matrix). A shared expert is a block behind the experts that it runs beside: its
/// units are features, theirs are experts. A tied head's panel names the embedding's parameter. Throws UsageError for
/// latent attention and plain MLPs, which have no panels.
std::vector<BlockLayout> block_layouts(const ModelSpec& model);

}  // namespace octavo
