#include "spec/config_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 53;  // sizes stay exact in a double
constexpr std::int64_t kMaxLayers = 100'000;              // a table row per parameter is kept in memory
constexpr std::int64_t kMaxElements = std::int64_t{1}
                                      << 58;  // all sums of bytes stay below 2^63, at 16 bytes an element

std::int64_t check_size(const JsonObject& keys, const std::string& key, std::int64_t value, std::int64_t max) {
  if (value < 1 || value > max) keys.fail(key, cat("is ", value, "; it must be at least 1 and at most ", max));
  return value;
}

}  // namespace

std::int64_t ConfigReader::size(const std::string& key) {
  return check_size(keys, key, keys.integer(key), kMaxSize);
}

std::int64_t ConfigReader::size_or(const std::string& key, std::int64_t fallback) {
  return check_size(keys, key, keys.find_integer(key).value_or(fallback), kMaxSize);
}

double ConfigReader::positive_or(const std::string& key, double fallback) {
  const double value = keys.find_number(key).value_or(fallback);
  if (!(value > 0)) keys.fail(key, cat("is ", value, "; it must be greater than 0"));
  return value;
}

double ConfigReader::not_negative_or(const std::string& key, double fallback) {
  const double value = keys.find_number(key).value_or(fallback);
  if (!(value >= 0)) keys.fail(key, cat("is ", value, "; it must be at least 0"));
  return value;
}

void ConfigReader::expect(const std::string& key, const nlohmann::json& wanted, const std::string& because) {
  const nlohmann::json* found = keys.find(key);
  if (found != nullptr && *found != wanted) {
    keys.fail(key, cat("is ", show_json(*found), "; ", because, ", so it must be ", show_json(wanted)));
  }
}

ModelSpec ConfigReader::model(std::int64_t default_positions) {
  ModelSpec model;
  model.model_type = keys.text("model_type");
  model.hidden_size = size("hidden_size");
  model.vocab_size = size("vocab_size");
  model.norm_eps = positive_or("rms_norm_eps", 1e-6);
  model.initializer_range = not_negative_or("initializer_range", 0.02);
  model.tied_embeddings = keys.find_boolean("tie_word_embeddings").value_or(false);
  model.max_positions = size_or("max_position_embeddings", default_positions);
  num_layers_ = check_size(keys, "num_hidden_layers", keys.integer("num_hidden_layers"), kMaxLayers);
  return model;
}

AttentionSpec ConfigReader::attention(const ModelSpec& model, bool qk_norm) {
  AttentionSpec attention;
  attention.num_heads = size("num_attention_heads");
  attention.num_kv_heads = size_or("num_key_value_heads", attention.num_heads);
  if (attention.num_heads % attention.num_kv_heads != 0) {
    keys.fail("num_attention_heads", cat("is ", attention.num_heads, " and num_key_value_heads is ",
                                         attention.num_kv_heads, "; the first must be a multiple of the second"));
  }
  if (keys.find("head_dim") == nullptr && model.hidden_size % attention.num_heads != 0) {
    keys.fail("head_dim", cat("is absent, and hidden_size = ", model.hidden_size,
                              " is no multiple of num_attention_heads = ", attention.num_heads, "; write head_dim"));
  }
  attention.head_dim = size_or("head_dim", std::max<std::int64_t>(1, model.hidden_size / attention.num_heads));
  if (attention.head_dim % 2 != 0) {
    keys.fail("head_dim",
              cat("is ", attention.head_dim, "; it must be even, because the rotary embedding turns pairs"));
  }
  attention.qk_norm = qk_norm;
  attention.rope = read_rope(*this);
  expect("attention_bias", false, "biases in model.safetensors are not built");
  expect("attention_dropout", 0, "dropout is not built");
  expect("rope_interleaved", false, "interleaved rotary pairs are not built");
  return attention;
}

LayerSpec ConfigReader::layer(const ModelSpec& model, bool qk_norm) {
  LayerSpec layer;
  layer.mixer = attention(model, qk_norm);
  layer.ffn = GatedMlpSpec{.num_features = size("intermediate_size")};
  expect("hidden_act", "silu", "other activations are not built");
  return layer;
}

void ConfigReader::repeat(ModelSpec& model, const LayerSpec& layer) {
  if (const nlohmann::json* types = keys.find("layer_types"); types != nullptr) {
    if (!types->is_array() || static_cast<std::int64_t>(types->size()) != num_layers_) {
      keys.fail("layer_types",
                cat("is ", show_json(*types), "; it must be a list of num_hidden_layers = ", num_layers_, " entries"));
    }
    for (std::size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] != "full_attention") {
        keys.fail(cat("layer_types[", i, "]"), cat("is ", show_json((*types)[i]), "; in ", in_quotes(model.model_type),
                                                   " only \"full_attention\" is built"));
      }
    }
  }
  model.layers.assign(static_cast<std::size_t>(num_layers_), layer);
}

void ConfigReader::finish(const ModelSpec& model) {
  for (const char* key : {"architectures", "bos_token_id", "eos_token_id", "pad_token_id", "use_cache", "dtype",
                          "torch_dtype", "transformers_version", "pretraining_tp", "is_llama_config",
                          "max_window_layers", "_name_or_path", "_attn_implementation_autoset"}) {
    keys.ignore(key);
  }
  keys.finish();

  // Beyond this point every product of sizes is safe.
  using Wide = __int128;
  const auto check_product = [this](const char* a, Wide a_value, const char* b, Wide b_value) {
    if (a_value * b_value > kMaxElements) {
      keys.fail(a, cat("is ", static_cast<std::int64_t>(a_value), "; ", a, " x ", b, " = ",
                       static_cast<std::int64_t>(a_value), " x ", static_cast<std::int64_t>(b_value),
                       " exceeds 2^58 elements; correct them"));
    }
    return a_value * b_value;
  };
  const Wide hidden = model.hidden_size;
  Wide elements =
      (model.tied_embeddings ? 1 : 2) * check_product("hidden_size", hidden, "vocab_size", model.vocab_size);
  const LayerSpec& layer = model.layers.front();
  const AttentionSpec& attention = std::get<AttentionSpec>(layer.mixer);
  const GatedMlpSpec& mlp = std::get<GatedMlpSpec>(layer.ffn);
  const Wide width = check_product("num_attention_heads", attention.num_heads, "head_dim", attention.head_dim);
  const Wide layer_elements = 4 * check_product("hidden_size", hidden, "(num_attention_heads x head_dim)", width) +
                              3 * check_product("hidden_size", hidden, "intermediate_size", mlp.num_features) +
                              4 * hidden;
  elements += layer_elements * num_layers_;
  if (elements > kMaxElements) {
    keys.fail("num_hidden_layers", cat("is ", num_layers_, "; with hidden_size = ", model.hidden_size,
                                       " the model exceeds 2^58 parameters; correct them"));
  }
}

}  // namespace octavo
