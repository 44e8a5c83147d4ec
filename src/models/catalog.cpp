#include "octavo/models/catalog.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/blocks/attention.h"
#include "octavo/blocks/gated_mlp.h"

namespace octavo {
namespace {

struct MakeBlock {
  const ModelSpec& model;
  const BlockLayout& layout;

  std::unique_ptr<Block> operator()(const AttentionSpec& spec) const {
    return make_attention(layout, spec, model.norm_eps);
  }
  std::unique_ptr<Block> operator()(const GatedMlpSpec&) const { return make_gated_mlp(layout, model.norm_eps); }
  template <class Spec>
  std::unique_ptr<Block> operator()(const Spec&) const {
    throw InternalError(cat("[models] ", layout.name, " is not built"));
  }
};

}  // namespace

std::vector<std::unique_ptr<Block>> make_blocks(const ModelSpec& model, const ParamTable& table) {
  check_trainable(model);
  std::vector<std::unique_ptr<Block>> blocks;
  for (const LayerSpec& layer : model.layers) {
    // Block 0 is the embedding; each layer has a mixer and a feed-forward part.
    blocks.push_back(std::visit(MakeBlock{model, table.blocks()[blocks.size() + 1]}, layer.mixer));
    blocks.push_back(std::visit(MakeBlock{model, table.blocks()[blocks.size() + 1]}, layer.ffn));
  }
  return blocks;
}

}  // namespace octavo
