#include <set>
#include <string>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/model_spec.h"

namespace octavo {
namespace {

// What of a layer the engine does not train; "" if it trains it.
struct Unbuilt {
  std::string operator()(const AttentionSpec& spec) const {
    if (spec.output_gate) return "attention with an output gate";
    return spec.rope.width != 0 ? "partial rotary embeddings" : "";
  }
  std::string operator()(const DeltaNetSpec&) const { return "Gated DeltaNet"; }
  std::string operator()(const LatentAttentionSpec&) const { return "latent attention"; }
  std::string operator()(const GatedMlpSpec&) const { return ""; }
  std::string operator()(const PlainMlpSpec&) const { return "plain MLPs"; }
  std::string operator()(const MoeSpec&) const { return "experts"; }
};

}  // namespace

void check_trainable(const ModelSpec& model) {
  std::set<std::string> unbuilt;
  for (const LayerSpec& layer : model.layers) {
    unbuilt.insert(std::visit(Unbuilt(), layer.mixer));
    unbuilt.insert(std::visit(Unbuilt(), layer.ffn));
  }
  if (model.zero_centred_norms) unbuilt.insert("zero-centred norms");
  unbuilt.erase("");
  if (unbuilt.empty()) return;
  throw UsageError(cat("[spec] ", model.model_type, " does not run yet: not built are ",
                       join(std::vector<std::string>(unbuilt.begin(), unbuilt.end()), ", "),
                       "; use a model of type llama or qwen3"));
}

}  // namespace octavo
