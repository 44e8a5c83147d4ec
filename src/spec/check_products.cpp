#include "octavo/base/text.h"
#include "spec/config_reader.h"

namespace octavo {
namespace {

using Wide = __int128;

constexpr std::int64_t kMaxElements = std::int64_t{1} << 58;  // sums of bytes stay below 2^63, at 16 bytes an element
constexpr std::int64_t kMaxExperts = 200'000;                 // of all layers: each has rows in the parameter table

class ProductChecker {
 public:
  ProductChecker(const ModelSpec& model, const JsonObject& keys) : hidden_(model.hidden_size), keys_(keys) {}

  Wide product(const char* a, Wide a_value, const char* b, Wide b_value) const {
    if (a_value * b_value > kMaxElements) {
      keys_.fail(a, cat("is ", static_cast<std::int64_t>(a_value), "; ", a, " x ", b, " = ",
                        static_cast<std::int64_t>(a_value), " x ", static_cast<std::int64_t>(b_value),
                        " exceeds 2^58 elements; correct them"));
    }
    return a_value * b_value;
  }

  // Bounds of the elements of a block.
  Wide operator()(const AttentionSpec& spec) const {
    const Wide width = product("num_attention_heads", spec.num_heads, "head_dim", spec.head_dim);
    return 5 * product("hidden_size", hidden_, "(num_attention_heads x head_dim)", width);
  }
  Wide operator()(const DeltaNetSpec& spec) const {
    const Wide keys = product("linear_num_key_heads", spec.num_key_heads, "linear_key_head_dim", spec.key_dim);
    const Wide values =
        product("linear_num_value_heads", spec.num_value_heads, "linear_value_head_dim", spec.value_dim);
    const Wide channels = 2 * keys + values;
    const Wide state =
        product("linear_key_head_dim", spec.key_dim, "(linear_num_value_heads x linear_value_head_dim)", values);
    return product("linear_conv_kernel_dim", spec.conv_width, "(channels of the convolution)", channels) + state +
           4 * product("hidden_size", hidden_, "(channels of the convolution)", channels);
  }
  Wide operator()(const LatentAttentionSpec&) const { return 0; }  // no config has it
  Wide operator()(const PlainMlpSpec&) const { return 0; }
  Wide operator()(const GatedMlpSpec& spec) const {
    return 3 * product("hidden_size", hidden_, "intermediate_size", spec.num_features);
  }
  Wide operator()(const MoeSpec& spec) const {
    const Wide features =
        product("num_experts", spec.num_experts, "(features of an expert)", spec.num_features) + spec.shared_features;
    const Wide elements = 3 * product("hidden_size", hidden_, "(num_experts x features of an expert)", features);
    return elements + product("hidden_size", hidden_, "num_experts", spec.num_experts + 1);
  }

 private:
  Wide hidden_;
  const JsonObject& keys_;
};

}  // namespace

void check_products(const ModelSpec& model, const JsonObject& keys) {
  const ProductChecker checker(model, keys);
  const Wide hidden = model.hidden_size;
  Wide elements =
      (model.tied_embeddings ? 1 : 2) * checker.product("hidden_size", hidden, "vocab_size", model.vocab_size);
  Wide experts = 0;
  for (const LayerSpec& layer : model.layers) {
    elements += std::visit(checker, layer.mixer) + std::visit(checker, layer.ffn) + 4 * hidden;
    if (const auto* moe = std::get_if<MoeSpec>(&layer.ffn)) experts += moe->num_experts;
  }
  if (experts > kMaxExperts) {
    keys.fail("num_hidden_layers", cat("is ", model.layers.size(), "; all layers together have more than ", kMaxExperts,
                                       " experts; correct num_hidden_layers or num_experts"));
  }
  if (elements > kMaxElements) {
    keys.fail("num_hidden_layers", cat("is ", model.layers.size(), "; with hidden_size = ", model.hidden_size,
                                       " the model exceeds 2^58 parameters; correct them"));
  }
}

}  // namespace octavo
