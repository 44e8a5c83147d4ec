#include "octavo/layout/block_layout.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

[[noreturn]] void refuse_panels(const char* what) {
  throw UsageError(cat("[layout] ", what,
                       " have no layout of panels; use softmax attention, DeltaNet, gated MLPs or "
                       "experts"));
}

// Makes the blocks of one layer.
class LayerBlocks {
 public:
  LayerBlocks(const ModelSpec& model, int layer, std::vector<BlockLayout>& blocks)
      : form_(model.form),
        hidden_(model.hidden_size),
        prefix_(cat(model.form.prefix, "layers.", layer, ".")),
        name_(cat("layers.", layer, ".")),
        blocks_(blocks) {}

  void operator()(const AttentionSpec& spec) const {
    const std::int64_t queries = spec.num_heads / spec.num_kv_heads;
    const std::int64_t query_rows = queries * spec.head_dim;
    BlockLayout block = make("attention", BlockKind::Attention, spec.num_kv_heads, queries);
    block.panels.push_back({"qkv",
                            Half::Project,
                            hidden_,
                            false,
                            {{named("self_attn.q_proj.weight"), (spec.output_gate ? 2 : 1) * query_rows, true},
                             {named("self_attn.k_proj.weight"), spec.head_dim},
                             {named("self_attn.v_proj.weight"), spec.head_dim}}});
    block.panels.push_back({"out", Half::Mix, hidden_, true, {{named("self_attn.o_proj.weight"), query_rows, true}}});
    block.commons.push_back({"norm", named("input_layernorm.weight"), hidden_});
    if (spec.qk_norm) {
      block.commons.push_back({"q_norm", named("self_attn.q_norm.weight"), spec.head_dim, true});
      block.commons.push_back({"k_norm", named("self_attn.k_norm.weight"), spec.head_dim, true});
    }
    blocks_.push_back(std::move(block));
  }

  void operator()(const DeltaNetSpec& spec) const {
    const std::int64_t parts = spec.num_value_heads / spec.num_key_heads;
    const std::int64_t k = spec.key_dim, v = parts * spec.value_dim;
    BlockLayout block = make("delta_net", BlockKind::DeltaNet, spec.num_key_heads, parts);
    block.panels.push_back({"in", Half::Project, hidden_, false, projection_sections(spec, k, v, parts)});
    const std::string conv = named("linear_attn.conv1d.weight");
    block.panels.push_back({"conv", Half::Mix, spec.conv_width, false, channel_sections(spec, conv, k, v)});
    block.panels.push_back({"decay",
                            Half::Mix,
                            1,
                            false,
                            {{named("linear_attn.A_log"), parts, true}, {named("linear_attn.dt_bias"), parts, true}},
                            /*decays=*/false,
                            /*float32=*/true});
    block.panels.push_back({"out", Half::Mix, hidden_, true, {{named("linear_attn.out_proj.weight"), v, true}}});
    block.commons.push_back({"norm", named("input_layernorm.weight"), hidden_});
    block.commons.push_back({.name = "output_norm",
                             .parameter = named("linear_attn.norm.weight"),
                             .size = spec.value_dim,
                             .in_units = true,
                             .float32 = true});
    blocks_.push_back(std::move(block));
  }

  void operator()(const GatedMlpSpec& spec) const {
    BlockLayout block = gated_mlp("mlp", BlockKind::GatedMlp, spec.num_features, "mlp.");
    block.commons.push_back({"norm", named("post_attention_layernorm.weight"), hidden_});
    blocks_.push_back(std::move(block));
  }

  void operator()(const MoeSpec& spec) const {
    const std::int64_t features = spec.num_features;
    const bool mixtral = form_.experts == CheckpointForm::Experts::Mixtral;
    const std::string router = mixtral ? "block_sparse_moe.gate.weight" : "mlp.gate.weight";
    BlockLayout block = make("experts", BlockKind::Moe, spec.num_experts, 1);
    block.units_per_token = spec.experts_per_token;
    if (form_.experts == CheckpointForm::Experts::Fused) {
      const std::string gate_up = named("mlp.experts.gate_up_proj");
      block.panels.push_back(
          {"gate_up",
           Half::Project,
           hidden_,
           false,
           {{gate_up, features, false, 0, 2 * features}, {gate_up, features, false, features, 2 * features}}});
      block.panels.push_back({"down", Half::Mix, features, false, {{named("mlp.experts.down_proj"), hidden_}}});
    } else {
      const std::string expert = mixtral ? "block_sparse_moe.experts.{}." : "mlp.experts.{}.";
      const auto matrix = [&](const char* theirs, const char* qwens) {
        return named(expert + (mixtral ? theirs : qwens) + ".weight");
      };
      block.panels.push_back({"gate_up",
                              Half::Project,
                              hidden_,
                              false,
                              {{matrix("w1", "gate_proj"), features}, {matrix("w3", "up_proj"), features}}});
      block.panels.push_back({"down", Half::Mix, features, false, {{matrix("w2", "down_proj"), hidden_}}});
    }
    block.commons.push_back({"norm", named("post_attention_layernorm.weight"), hidden_});
    block.commons.push_back({"router", named(router), hidden_, false, spec.num_experts, /*decays=*/true});
    blocks_.push_back(std::move(block));
    if (spec.shared_features == 0) return;
    BlockLayout shared =
        gated_mlp("shared_expert", BlockKind::SharedExpert, spec.shared_features, "mlp.shared_expert.");
    if (spec.shared_gate) {
      shared.commons.push_back(
          {.name = "gate_row", .parameter = named("mlp.shared_expert_gate.weight"), .size = hidden_, .decays = true});
    }
    blocks_.push_back(std::move(shared));
  }

  void operator()(const LatentAttentionSpec&) const { refuse_panels("latent attention layers"); }
  void operator()(const PlainMlpSpec&) const { refuse_panels("plain MLPs"); }

 private:
  std::string named(const std::string& parameter) const { return prefix_ + parameter; }

  BlockLayout make(const char* name, BlockKind kind, std::int64_t num_units, std::int64_t parts_per_unit) const {
    return {name_ + name, kind, num_units, parts_per_unit, {}, {}};
  }

  BlockLayout gated_mlp(const char* name, BlockKind kind, std::int64_t features, const std::string& group) const {
    BlockLayout block = make(name, kind, features, 1);
    block.panels.push_back({"gate", Half::Project, hidden_, false, {{named(group + "gate_proj.weight"), 1}}});
    block.panels.push_back({"up", Half::Project, hidden_, false, {{named(group + "up_proj.weight"), 1}}});
    block.panels.push_back({"down", Half::Mix, hidden_, true, {{named(group + "down_proj.weight"), 1}}});
    return block;
  }

  // Rows of a matrix in which those of q of all key heads come first, then those of k, then those of v. k, v: rows per
  // key head.
  static std::vector<PanelSection> channel_sections(const DeltaNetSpec& spec, const std::string& parameter,
                                                    std::int64_t k, std::int64_t v) {
    const std::int64_t key_rows = spec.key_width();
    return {{parameter, k}, {parameter, k, false, key_rows}, {parameter, v, true, 2 * key_rows}};
  }

  std::vector<PanelSection> projection_sections(const DeltaNetSpec& spec, std::int64_t k, std::int64_t v,
                                                std::int64_t parts) const {
    if (form_.grouped_delta_net) {
      const std::string qkvz = named("linear_attn.in_proj_qkvz.weight"), ba = named("linear_attn.in_proj_ba.weight");
      const std::int64_t stride = 2 * k + 2 * v;
      return {{qkvz, k, false, 0, stride},        {qkvz, k, false, k, stride},     {qkvz, v, true, 2 * k, stride},
              {qkvz, v, true, 2 * k + v, stride}, {ba, parts, true, 0, 2 * parts}, {ba, parts, true, parts, 2 * parts}};
    }
    std::vector<PanelSection> sections = channel_sections(spec, named("linear_attn.in_proj_qkv.weight"), k, v);
    sections.push_back({named("linear_attn.in_proj_z.weight"), v, true});
    sections.push_back({named("linear_attn.in_proj_b.weight"), parts, true});
    sections.push_back({named("linear_attn.in_proj_a.weight"), parts, true});
    return sections;
  }

  const CheckpointForm& form_;
  const std::int64_t hidden_;
  const std::string prefix_, name_;
  std::vector<BlockLayout>& blocks_;
};

}  // namespace

std::string_view kind_name(BlockKind kind) {
  switch (kind) {
    case BlockKind::Embedding:
      return "embedding";
    case BlockKind::Attention:
      return "attention";
    case BlockKind::DeltaNet:
      return "DeltaNet";
    case BlockKind::GatedMlp:
      return "MLP";
    case BlockKind::Moe:
      return "experts";
    case BlockKind::SharedExpert:
      return "shared expert";
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
    case BlockKind::DeltaNet:
      return "key heads";
    case BlockKind::GatedMlp:
    case BlockKind::SharedExpert:
      return "features";
    case BlockKind::Moe:
      return "experts";
  }
  throw InternalError("[layout] unknown block kind");
}

std::string_view part_name(BlockKind kind) {
  return kind == BlockKind::Attention ? "query heads" : kind == BlockKind::DeltaNet ? "value heads" : "parts";
}

std::string PanelSection::parameter_of(std::int64_t unit) const {
  const std::size_t place = parameter.find("{}");
  return place == std::string::npos ? parameter : cat(parameter.substr(0, place), unit, parameter.substr(place + 2));
}

std::int64_t PanelLayout::rows_per_unit() const {
  std::int64_t rows = 0;
  for (const PanelSection& section : sections) rows += section.rows_per_unit;
  return rows;
}

std::vector<BlockLayout> block_layouts(const ModelSpec& model) {
  const std::string embedding = model.form.prefix + "embed_tokens.weight";
  std::vector<BlockLayout> blocks;
  blocks.push_back({"embedding",
                    BlockKind::Embedding,
                    model.vocab_size,
                    1,
                    {{"rows", Half::Mix, model.hidden_size, false, {{embedding, 1}}}},
                    {}});
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const LayerBlocks make_blocks(model, layer, blocks);
    std::visit(make_blocks, model.layers[layer].mixer);
    std::visit(make_blocks, model.layers[layer].ffn);
  }
  const std::string head = model.tied_embeddings ? embedding : "lm_head.weight";
  blocks.push_back({"head",
                    BlockKind::Head,
                    model.vocab_size,
                    1,
                    {{"rows", Half::Mix, model.hidden_size, false, {{head, 1}}}},
                    {{"norm", model.form.prefix + "norm.weight", model.hidden_size}}});
  return blocks;
}

}  // namespace octavo
