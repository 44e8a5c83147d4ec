#include "octavo/layout/block_layout.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr const char* kEmbeddingName = "model.embed_tokens.weight";

BlockLayout attention_layout(const AttentionSpec& spec, std::int64_t hidden, int layer) {
  const std::string prefix = cat("model.layers.", layer, ".");
  const std::int64_t query_rows = spec.num_heads / spec.num_kv_heads * spec.head_dim;
  BlockLayout block{cat("layers.", layer, ".attention"),
                    BlockKind::Attention,
                    spec.num_kv_heads,
                    spec.num_heads / spec.num_kv_heads,
                    {},
                    {}};
  block.panels.push_back({"qkv",
                          Half::Project,
                          hidden,
                          false,
                          {{prefix + "self_attn.q_proj.weight", query_rows, true},
                           {prefix + "self_attn.k_proj.weight", spec.head_dim},
                           {prefix + "self_attn.v_proj.weight", spec.head_dim}}});
  block.panels.push_back({"out", Half::Mix, hidden, true, {{prefix + "self_attn.o_proj.weight", query_rows, true}}});
  block.commons.push_back({"norm", prefix + "input_layernorm.weight", hidden});
  if (spec.qk_norm) {
    block.commons.push_back({"q_norm", prefix + "self_attn.q_norm.weight", spec.head_dim, true});
    block.commons.push_back({"k_norm", prefix + "self_attn.k_norm.weight", spec.head_dim, true});
  }
  return block;
}

BlockLayout mlp_layout(const GatedMlpSpec& spec, std::int64_t hidden, int layer) {
  const std::string prefix = cat("model.layers.", layer, ".");
  BlockLayout block{cat("layers.", layer, ".mlp"), BlockKind::GatedMlp, spec.num_features, 1, {}, {}};
  block.panels.push_back({"gate", Half::Project, hidden, false, {{prefix + "mlp.gate_proj.weight", 1}}});
  block.panels.push_back({"up", Half::Project, hidden, false, {{prefix + "mlp.up_proj.weight", 1}}});
  block.panels.push_back({"down", Half::Mix, hidden, true, {{prefix + "mlp.down_proj.weight", 1}}});
  block.commons.push_back({"norm", prefix + "post_attention_layernorm.weight", hidden});
  return block;
}

}  // namespace

std::string_view kind_name(BlockKind kind) {
  switch (kind) {
    case BlockKind::Embedding:
      return "embedding";
    case BlockKind::Attention:
      return "attention";
    case BlockKind::GatedMlp:
      return "MLP";
    case BlockKind::Head:
      return "head";
  }
  throw InternalError("[layout] unknown block kind");
}

std::string_view unit_name(BlockKind kind) {
  switch (kind) {
    case BlockKind::Embedding:
    case BlockKind::Head:
      return "vocabulary rows";
    case BlockKind::Attention:
      return "KV heads";
    case BlockKind::GatedMlp:
      return "features";
  }
  throw InternalError("[layout] unknown block kind");
}

std::int64_t PanelLayout::rows_per_unit() const {
  std::int64_t rows = 0;
  for (const PanelSection& section : sections) rows += section.rows_per_unit;
  return rows;
}

std::vector<BlockLayout> block_layouts(const ModelSpec& model) {
  std::vector<BlockLayout> blocks;
  blocks.push_back({"embedding",
                    BlockKind::Embedding,
                    model.vocab_size,
                    1,
                    {{"rows", Half::Mix, model.hidden_size, false, {{kEmbeddingName, 1}}}},
                    {}});
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    std::visit([&](const AttentionSpec& spec) { blocks.push_back(attention_layout(spec, model.hidden_size, layer)); },
               model.layers[layer].mixer);
    std::visit([&](const GatedMlpSpec& spec) { blocks.push_back(mlp_layout(spec, model.hidden_size, layer)); },
               model.layers[layer].ffn);
  }
  blocks.push_back({"head",
                    BlockKind::Head,
                    model.vocab_size,
                    1,
                    {{"rows",
                      Half::Mix,
                      model.hidden_size,
                      false,
                      {{model.tied_embeddings ? kEmbeddingName : "lm_head.weight", 1}}}},
                    {{"norm", "model.norm.weight", model.hidden_size}}});
  return blocks;
}

}  // namespace octavo
