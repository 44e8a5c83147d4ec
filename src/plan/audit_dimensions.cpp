#include "octavo/plan/audit_dimensions.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// Of the first layer that has one; nullptr if none does.
template <class Spec>
const Spec* first_mixer(const ModelSpec& model) {
  for (const LayerSpec& layer : model.layers) {
    if (const auto* spec = std::get_if<Spec>(&layer.mixer)) return spec;
  }
  return nullptr;
}

template <class Spec>
const Spec* first_ffn(const ModelSpec& model) {
  for (const LayerSpec& layer : model.layers) {
    if (const auto* spec = std::get_if<Spec>(&layer.ffn)) return spec;
  }
  return nullptr;
}

template <class Spec>
std::int64_t num_mixers(const ModelSpec& model) {
  return std::count_if(model.layers.begin(), model.layers.end(),
                       [](const LayerSpec& layer) { return std::holds_alternative<Spec>(layer.mixer); });
}

bool same_kind(const LayerSpec& a, const LayerSpec& b) {
  return a.mixer.index() == b.mixer.index() && a.ffn.index() == b.ffn.index();
}

TensorFit fit(const ModelSpec& model, std::int64_t degree, const std::vector<AuditDimension>& dimensions) {
  if (degree < 1) throw UsageError(cat("[plan] a degree of ", degree, "; a degree is at least 1"));
  TensorFit result{.status = TensorFit::Status::Exact, .failing = {}, .kv_replicas = 1};
  for (const AuditDimension& dimension : dimensions) {
    if (dimension.size % degree != 0) result.failing.push_back(dimension.name);
  }
  const auto* attention = first_mixer<AttentionSpec>(model);
  const bool divides_ranks = attention != nullptr && degree % attention->num_kv_heads == 0;
  if (divides_ranks) result.kv_replicas = degree / attention->num_kv_heads;
  if (!result.failing.empty()) {
    const bool only_kv = result.failing == std::vector<std::string>{"kv_heads"};
    result.status = only_kv && divides_ranks ? TensorFit::Status::KvReplication : TensorFit::Status::Misfit;
  }
  return result;
}

}  // namespace

std::int64_t Factorisation::power_of_two() const {
  return powers.empty() || powers.front().prime != 2 ? 1 : std::int64_t{1} << powers.front().exponent;
}

std::int64_t Factorisation::odd_part() const {
  std::int64_t product = 1;
  for (const Power& power : powers) {
    for (int i = 0; power.prime != 2 && i < power.exponent; ++i) product *= power.prime;
  }
  return product;
}

std::string Factorisation::to_string() const {
  std::vector<std::string> parts;
  for (const Power& power : powers) {
    parts.push_back(power.exponent == 1 ? cat(power.prime) : cat(power.prime, "^", power.exponent));
  }
  return parts.empty() ? "1" : join(parts, " * ");
}

Factorisation factorise(std::int64_t number) {
  if (number < 1) throw UsageError(cat("[plan] ", number, " has no factors; use a size of at least 1"));
  Factorisation result;
  for (std::int64_t prime = 2; prime <= number / prime; ++prime) {
    int exponent = 0;
    for (; number % prime == 0; number /= prime) ++exponent;
    if (exponent > 0) result.powers.push_back({prime, exponent});
  }
  if (number > 1) result.powers.push_back({number, 1});
  return result;
}

std::vector<std::int64_t> divisors_up_to(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t divisor = 1; divisor <= std::min(number, most); ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

std::vector<std::int64_t> power_of_two_divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t divisor = 1; divisor <= std::min(number, most) && number % divisor == 0; divisor *= 2)
    divisors.push_back(divisor);
  return divisors;
}

Padding padding(std::int64_t size, std::int64_t degree) {
  const std::int64_t padded = (size + degree - 1) / degree * degree;
  return {padded, static_cast<double>(padded - size) / static_cast<double>(size)};
}

std::vector<AuditDimension> audit_dimensions(const ModelSpec& model) {
  std::vector<AuditDimension> list;
  const auto add = [&list](const char* name, std::int64_t size, CutBy cut_by, const char* what) {
    list.push_back({name, size, cut_by, what});
  };
  const auto* attention = first_mixer<AttentionSpec>(model);
  const auto* latent = first_mixer<LatentAttentionSpec>(model);
  const auto* delta_net = first_mixer<DeltaNetSpec>(model);
  const auto* mlp = first_ffn<GatedMlpSpec>(model);
  const auto* plain = first_ffn<PlainMlpSpec>(model);
  const auto* moe = first_ffn<MoeSpec>(model);
  add("vocab_rows", model.vocab_size, CutBy::Tensor, "rows of the vocabulary");
  if (mlp != nullptr) add("ffn_intermediate", mlp->num_features, CutBy::Tensor, "features of the FFN");
  if (plain != nullptr) add("ffn_intermediate", plain->num_features, CutBy::Tensor, "features of the FFN");
  if (attention != nullptr) {
    add("query_heads", attention->num_heads, CutBy::Tensor, "query heads, and their gates");
    add("kv_heads", attention->num_kv_heads, CutBy::Tensor, "KV heads");
  } else if (latent != nullptr) {
    add("query_heads", latent->num_heads, CutBy::Tensor, "heads of latent attention");
  }
  if (delta_net != nullptr) {
    add("gdn_qk_heads", delta_net->num_key_heads, CutBy::Tensor, "key heads of DeltaNet");
    add("gdn_v_heads", delta_net->num_value_heads, CutBy::Tensor, "value heads of DeltaNet");
  }
  if (moe != nullptr) {
    add("experts", moe->num_experts, CutBy::Experts, "experts");
    if (moe->shared_features > 0) {
      add("shared_expert_intermediate", moe->shared_features, CutBy::Tensor, "features of the shared expert");
    }
    add("expert_intermediate", moe->num_features, CutBy::Nothing, "features of an expert");
  }
  const auto num_layers = static_cast<std::int64_t>(model.layers.size());
  add("hidden", model.hidden_size, CutBy::Nothing, "hidden size");
  add("layers", num_layers, CutBy::Pipeline, "layers");
  if (num_layers > 0) {
    add("super_blocks", num_layers / super_block_size(model), CutBy::Pipeline, "runs of layers that repeat");
  }
  if (attention != nullptr) {
    const std::int64_t query_rows = attention->num_heads * attention->head_dim;
    add("full_attention_layers", num_mixers<AttentionSpec>(model), CutBy::Nothing, "layers with softmax attention");
    add("head_dim", attention->head_dim, CutBy::Nothing, "width of a head");
    add("q_proj_rows", (attention->output_gate ? 2 : 1) * query_rows, CutBy::Nothing,
        attention->output_gate ? "query and gate rows" : "query rows");
    if (attention->output_gate) add("gate_cols", query_rows, CutBy::Nothing, "gate columns");
    add("kv_proj_rows", attention->num_kv_heads * attention->head_dim, CutBy::Nothing, "rows of k, of v");
    add("o_proj_cols", query_rows, CutBy::Nothing, "columns of the output projection");
  }
  if (delta_net != nullptr) {
    add("gdn_layers", num_mixers<DeltaNetSpec>(model), CutBy::Nothing, "layers with DeltaNet");
    add("gdn_head_dim", delta_net->value_dim, CutBy::Nothing, "width of a value head");
    add("gdn_conv_channels", delta_net->conv_channels(), CutBy::Nothing, "channels of the convolution, in 3 sections");
    add("gdn_z_rows", delta_net->value_width(), CutBy::Nothing, "rows of the output gate z");
  }
  return list;
}

const AuditDimension& find_dimension(const std::vector<AuditDimension>& dimensions, const std::string& name) {
  std::vector<std::string> names;
  for (const AuditDimension& dimension : dimensions) {
    if (dimension.name == name) return dimension;
    names.push_back(dimension.name);
  }
  const std::string close = nearest(name, names);
  throw UsageError(cat("[plan] the model has no dimension ", in_quotes(name), "; ",
                       close.empty() ? cat("it has ", join(names, ", ")) : cat("did you mean ", close, "?")));
}

TensorFit tensor_fit(const ModelSpec& model, std::int64_t degree) {
  std::vector<AuditDimension> dimensions = audit_dimensions(model);
  std::erase_if(dimensions, [](const AuditDimension& dimension) {
    return dimension.cut_by != CutBy::Tensor && dimension.cut_by != CutBy::Experts;
  });
  return fit(model, degree, dimensions);
}

TensorFit ulysses_fit(const ModelSpec& model, std::int64_t degree) {
  std::vector<AuditDimension> dimensions = audit_dimensions(model);
  std::erase_if(dimensions, [](const AuditDimension& dimension) {
    return dimension.name != "query_heads" && dimension.name != "kv_heads" && dimension.name != "gdn_qk_heads";
  });
  return fit(model, degree, dimensions);
}

FittingDegrees fitting_degrees(const ModelSpec& model, std::int64_t most) {
  FittingDegrees degrees;
  for (std::int64_t degree = 1; degree <= most; ++degree) {
    const TensorFit::Status status = tensor_fit(model, degree).status;
    if (status == TensorFit::Status::Exact) degrees.exact.push_back(degree);
    if (status != TensorFit::Status::Misfit) degrees.with_kv_replication.push_back(degree);
  }
  return degrees;
}

std::int64_t super_block_size(const ModelSpec& model) {
  const auto num_layers = static_cast<std::int64_t>(model.layers.size());
  for (std::int64_t size = 1; size < num_layers; ++size) {
    if (num_layers % size != 0) continue;
    bool repeats = true;
    for (std::int64_t i = size; repeats && i < num_layers; ++i) {
      repeats = same_kind(model.layers[i], model.layers[i - size]);
    }
    if (repeats) return size;
  }
  return num_layers;
}

}  // namespace octavo
