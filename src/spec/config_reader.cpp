#include "spec/config_reader.h"

#include <nlohmann/json.hpp>

#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 53;  // sizes stay exact in a double
constexpr std::int64_t kMaxLayers = 100'000;              // a table row per parameter is kept in memory

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

void ConfigReader::check_absent(const std::string& key, std::int64_t derived, std::int64_t theirs) {
  if (keys.find(key) != nullptr || derived == theirs) return;
  keys.fail(
      key, cat("is absent; transformers reads that as ", theirs, ", the other sizes say ", derived, "; write the key"));
}

void ConfigReader::finish(const ModelSpec& model) {
  for (const char* key : {"architectures", "bos_token_id", "eos_token_id", "pad_token_id", "use_cache", "dtype",
                          "torch_dtype", "transformers_version", "pretraining_tp", "is_llama_config",
                          "max_window_layers", "_name_or_path", "_attn_implementation_autoset"}) {
    keys.ignore(key);
  }
  keys.finish();
  check_products(model, keys);
}

}  // namespace octavo
