#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/spec/model_spec.h"

using namespace octavo;

TEST_CASE("published models have exactly their known number of parameters and tensors") {
  const std::string facts_file = "tests/data/configs/facts.json";
  const nlohmann::json facts = parse_json(read_text_file(facts_file, facts_file), facts_file);
  for (const std::string name : {"llama-2-7b", "llama-3-8b", "llama-3-70b", "llama-3.1-405b", "qwen3-8b", "qwen3-32b",
                                 "smollm2-135m", "tsp-reference-7b"}) {
    CAPTURE(name);
    const ModelSpec model = read_model_spec(cat("tests/data/configs/", name, ".json"));
    CHECK(num_parameters(model) == facts[name]["parameters"].get<std::int64_t>());
    CHECK(parameters(model).size() == facts[name]["text_tensors_in_file"].get<std::size_t>());
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
