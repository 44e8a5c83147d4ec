#include "octavo/spec/parameters.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/spec/decode_state.h"
#include "octavo/spec/model_spec.h"

using namespace octavo;

TEST_CASE("published models have exactly their known number of parameters and tensors") {
  const std::string facts_file = "tests/data/configs/facts.json";
  const nlohmann::json facts = parse_json(read_text_file(facts_file, facts_file), facts_file);
  constexpr Bytes kBf16 = 2;
  CHECK(facts.size() == 14);
  for (const auto& [name, fact] : facts.items()) {
    CAPTURE(name);
    const ModelSpec model = read_model_spec(cat("tests/data/configs/", name, ".json"));
    std::int64_t num_attention = 0, num_delta_net = 0, num_experts = 0;
    for (const LayerSpec& layer : model.layers) {
      if (const auto* moe = std::get_if<MoeSpec>(&layer.ffn)) num_experts = moe->num_experts;
      const auto* attention = std::get_if<AttentionSpec>(&layer.mixer);
      if (attention == nullptr) {
        ++num_delta_net;
        continue;
      }
      ++num_attention;
      CHECK(attention->head_dim == fact["head_dim"]);
      CHECK(attention->num_heads * attention->head_dim == fact["query_heads_times_head_dim"]);
    }
    CHECK(num_parameters(model) == fact["parameters"]);
    CHECK(num_active_parameters(model) == fact["active_parameters_per_token"]);
    CHECK(parameters(model).size() == fact["text_tensors_in_file"]);
    CHECK(file_bytes(model, kBf16) == fact["text_bytes_bf16"]);
    CHECK(num_attention == fact["attention_layers"]);
    CHECK(kv_cache_bytes_per_token(model, kBf16) == fact["kv_cache_bytes_per_token_bf16"]);
    CHECK(num_experts == fact.value("experts", 0));
    CHECK(num_delta_net == fact.value("linear_attention_layers", 0));
    CHECK(recurrent_state_bytes(model) == fact.value("recurrent_state_bytes_per_sequence_fp32", Bytes{0}));
    CHECK(num_mtp_parameters(model) == fact.value("mtp_parameters", std::int64_t{0}));
    CHECK(mtp_parameters(model).size() == fact.value("mtp_tensors", std::size_t{0}));
    if (!fact.contains("file_bytes_text_vision_mtp")) continue;
    const Bytes beside = kBf16 * (fact["vision_parameters"].get<Bytes>() + num_mtp_parameters(model));
    CHECK(file_bytes(model, kBf16) + beside == fact["file_bytes_text_vision_mtp"]);
  }
}

TEST_CASE("the elements of the layers, the vocabulary and the last norm are all there is") {
  for (const char* name : {"qwen3.5-27b", "qwen3-30b-a3b", "smollm2-135m"}) {
    const ModelSpec model = read_model_spec(cat("tests/data/configs/", name, ".json"));
    std::int64_t total = (model.tied_embeddings ? 1 : 2) * model.vocab_size * model.hidden_size + model.hidden_size;
    for (const LayerSpec& layer : model.layers) total += mixer_parameters(model, layer) + ffn_parameters(model, layer);
    CHECK(total == num_parameters(model));
  }
}

TEST_CASE("parameters come in checkpoint order, each name once") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-8b.json");
  const std::vector<ParameterSpec> list = parameters(model);
  std::set<std::string> names;
  for (const ParameterSpec& parameter : list) CHECK(names.insert(parameter.name).second);
  CHECK(list.front().name == "model.embed_tokens.weight");
  CHECK(list[1].name == "model.layers.0.input_layernorm.weight");
  CHECK(list[list.size() - 2].name == "model.norm.weight");
  CHECK(list.back().name == "lm_head.weight");
  CHECK(names.contains("model.layers.35.self_attn.k_norm.weight"));
  CHECK(!names.contains("model.layers.36.input_layernorm.weight"));
}

TEST_CASE("linear weights are [out, in], also where heads times head_dim is not hidden_size") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-32b.json");
  for (const ParameterSpec& parameter : parameters(model)) {
    if (parameter.name == "model.layers.3.self_attn.q_proj.weight") {
      CHECK(parameter.shape == std::vector<std::int64_t>{64 * 128, 5120});
    }
    if (parameter.name == "model.layers.3.self_attn.o_proj.weight") {
      CHECK(parameter.shape == std::vector<std::int64_t>{5120, 64 * 128});
    }
    if (parameter.name == "model.layers.3.mlp.down_proj.weight") {
      CHECK(parameter.shape == std::vector<std::int64_t>{5120, 25600});
    }
  }
}

TEST_CASE("a tied head has no parameter of its own") {
  const ModelSpec model = read_model_spec("tests/data/configs/smollm2-135m.json");
  CHECK(parameters(model).back().name == "model.norm.weight");
}
