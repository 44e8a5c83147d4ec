#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/model_spec.h"
#include "spec/read_config.h"

using namespace octavo;
using nlohmann::json;

namespace {

json llama() {
  return {{"model_type", "llama"}, {"hidden_size", 64},        {"intermediate_size", 176},
          {"vocab_size", 320},     {"num_attention_heads", 8}, {"num_hidden_layers", 3},
          {"rms_norm_eps", 1e-5},  {"hidden_act", "silu"},     {"max_position_embeddings", 256}};
}

json qwen3() {
  json config = llama();
  config.update({{"model_type", "qwen3"},
                 {"num_key_value_heads", 4},
                 {"head_dim", 16},
                 {"rope_theta", 1000000},
                 {"use_sliding_window", false},
                 {"sliding_window", nullptr},
                 {"max_window_layers", 3}});
  return config;
}

const json kLlama3 = {{"rope_type", "llama3"},
                      {"factor", 8.0},
                      {"low_freq_factor", 1.0},
                      {"high_freq_factor", 4.0},
                      {"original_max_position_embeddings", 64}};

json without(json config, const std::string& key) {
  config.erase(key);
  return config;
}

const AttentionSpec& attention(const ModelSpec& model) {
  return std::get<AttentionSpec>(model.layers.at(0).mixer);
}

}  // namespace

TEST_CASE("an old llama config derives what it leaves out") {
  const ModelSpec model = read(llama());
  CHECK(model.model_type == "llama");
  CHECK(model.layers.size() == 3);
  CHECK(model.norm_eps == 1e-5);
  CHECK(model.initializer_range == 0.02);
  CHECK(!model.tied_embeddings);
  CHECK(model.max_positions == 256);
  CHECK(attention(model).num_heads == 8);
  CHECK(attention(model).num_kv_heads == 8);
  CHECK(attention(model).head_dim == 8);
  CHECK(!attention(model).qk_norm);
  CHECK(attention(model).rope.theta == 10000.0);
  CHECK(!attention(model).rope.llama3);
  CHECK(std::get<GatedMlpSpec>(model.layers[2].ffn).num_features == 176);
}

TEST_CASE("a qwen3 config has norms on q and k") {
  const ModelSpec model = read(qwen3());
  CHECK(attention(model).qk_norm);
  CHECK(attention(model).num_kv_heads == 4);
  CHECK(attention(model).head_dim == 16);
  CHECK(attention(model).rope.theta == 1e6);
}

TEST_CASE("old and new forms of the rotary embedding read the same") {
  json old_name = kLlama3;
  old_name["type"] = old_name["rope_type"];
  old_name.erase("rope_type");
  const json forms[] = {
      with(llama(), {{"rope_theta", 500000.0}, {"rope_scaling", kLlama3}}),
      with(llama(), {{"rope_theta", 500000}, {"rope_scaling", old_name}}),
      with(llama(), {{"rope_theta", 500000}, {"rope_scaling", with(old_name, {{"rope_type", "llama3"}})}}),
      with(llama(), {{"rope_parameters", with(kLlama3, {{"rope_theta", 500000.0}})}}),
      with(llama(), {{"rope_scaling", nullptr}, {"rope_parameters", with(kLlama3, {{"rope_theta", 500000.0}})}}),
      with(llama(), {{"rope_scaling", kLlama3}, {"rope_parameters", with(kLlama3, {{"rope_theta", 500000.0}})}}),
  };
  for (const json& form : forms) {
    CAPTURE(form.dump());
    const RopeSpec rope = attention(read(form)).rope;
    CHECK(rope.theta == 500000.0);
    REQUIRE(rope.llama3);
    CHECK(rope.llama3->factor == 8.0);
    CHECK(rope.llama3->low_freq_factor == 1.0);
    CHECK(rope.llama3->high_freq_factor == 4.0);
    CHECK(rope.llama3->original_max_positions == 64);
  }
  const ModelSpec plain = read(with(llama(), {{"rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "default"}}}}));
  CHECK(attention(plain).rope.theta == 5e5);
  CHECK(!attention(plain).rope.llama3);
}

TEST_CASE("two places that describe the rotary embedding must agree") {
  check_refused(with(llama(), {{"rope_theta", 1e4}, {"rope_parameters", {{"rope_theta", 2e4}}}}), {"rope_theta"});
  check_refused(with(llama(), {{"rope_scaling", {{"rope_type", "default"}}}, {"rope_parameters", kLlama3}}),
                {"rope_parameters", "rope_scaling"});
  check_refused(with(llama(), {{"rope_scaling", with(kLlama3, {{"type", "linear"}})}}), {"rope_type", "linear"});
}

TEST_CASE("llama3 scaling needs its four numbers, in range") {
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    check_refused(with(llama(), {{"rope_scaling", without(kLlama3, key)}}), {"rope_scaling", key, "missing"});
  }
  check_refused(with(llama(), {{"rope_scaling", with(kLlama3, {{"factor", 0.5}})}}), {"factor", "0.5"});
  check_refused(with(llama(), {{"rope_scaling", with(kLlama3, {{"low_freq_factor", 0}})}}), {"low_freq_factor"});
  check_refused(with(llama(), {{"rope_scaling", with(kLlama3, {{"high_freq_factor", 1}})}}), {"high_freq_factor"});
  check_refused(with(llama(), {{"rope_scaling", with(kLlama3, {{"original_max_position_embeddings", 0}})}}),
                {"original_max_position_embeddings"});
  check_refused(with(llama(), {{"rope_scaling", with(kLlama3, {{"fctor", 8}})}}), {"fctor", "nearest", "factor"});
  check_refused(with(llama(), {{"rope_scaling", 3}}), {"rope_scaling", "object"});
}

TEST_CASE("rope types that are not built are refused by name") {
  for (const char* type : {"linear", "dynamic", "yarn", "longrope"}) {
    check_refused(with(llama(), {{"rope_scaling", {{"type", type}, {"factor", 2.0}}}}), {type, "not built"});
  }
  check_refused(with(llama(), {{"rope_scaling", {{"rope_type", "spiral"}}}}), {"spiral", "unknown"});
}

TEST_CASE("nulls stand for absence where transformers writes them") {
  const ModelSpec model = read(with(llama(), {{"head_dim", nullptr},
                                              {"num_key_value_heads", nullptr},
                                              {"rope_scaling", nullptr},
                                              {"sliding_window", nullptr},
                                              {"pad_token_id", nullptr},
                                              {"layer_types", nullptr}}));
  CHECK(attention(model).head_dim == 8);
  CHECK(attention(model).num_kv_heads == 8);
}

TEST_CASE("keys of no consequence are ignored") {
  read(with(llama(), {{"architectures", {"LlamaForCausalLM"}},
                      {"bos_token_id", 1},
                      {"eos_token_id", {1, 2}},
                      {"pad_token_id", 0},
                      {"use_cache", true},
                      {"transformers_version", "5"},
                      {"pretraining_tp", 1},
                      {"is_llama_config", true},
                      {"rope_interleaved", false},
                      {"_name_or_path", "x"},
                      {"dtype", "float32"},
                      {"torch_dtype", "bfloat16"},
                      {"attention_dropout", 0.0},
                      {"attention_bias", false},
                      {"mlp_bias", false},
                      {"layer_types", {"full_attention", "full_attention", "full_attention"}}}));
  read(with(qwen3(), {{"sliding_window", 4096}}));  // unused: use_sliding_window is false
}

TEST_CASE("an unknown key is an error with the nearest known one") {
  check_refused(with(llama(), {{"num_attention_head", 8}}), {"num_attention_head", "nearest", "num_attention_heads"});
  check_refused(with(llama(), {{"quantization_config", {{"bits", 4}}}}), {"quantization_config", "remove it"});
  check_refused(with(llama(), {{"bad\nkey", 1}}), {"bad\\x0akey"});
}

TEST_CASE("features that are not built are refused with key and value") {
  check_refused(with(llama(), {{"attention_bias", true}}), {"attention_bias", "true", "not built"});
  check_refused(with(llama(), {{"mlp_bias", true}}), {"mlp_bias", "true"});
  check_refused(with(llama(), {{"attention_dropout", 0.1}}), {"attention_dropout", "0.1"});
  check_refused(with(llama(), {{"hidden_act", "gelu"}}), {"hidden_act", "gelu", "silu"});
  check_refused(with(llama(), {{"rope_interleaved", true}}), {"rope_interleaved"});
  check_refused(with(llama(), {{"sliding_window", 4096}}), {"sliding_window", "4096"});
  check_refused(with(qwen3(), {{"use_sliding_window", true}}), {"use_sliding_window", "true"});
  check_refused(with(llama(), {{"partial_rotary_factor", 0.5}}), {"partial_rotary_factor", "0.5"});
  check_refused(with(llama(), {{"layer_types", {"full_attention", "sliding_attention", "full_attention"}}}),
                {"layer_types[1]", "sliding_attention"});
  check_refused(with(llama(), {{"layer_types", {"full_attention"}}}), {"layer_types", "3"});
}

TEST_CASE("model types that are not built are refused by name") {
  check_refused(with(llama(), {{"model_type", "qwen2"}}), {"qwen2", "not built", "biases", "llama, mixtral, qwen3"});
  check_refused(with(llama(), {{"model_type", "gemma3_text"}}), {"gemma3_text", "not built", "sliding windows"});
  check_refused(with(llama(), {{"model_type", "gpt2"}}), {"gpt2", "unknown"});
  check_refused(without(llama(), "model_type"), {"model_type", "missing"});
}

TEST_CASE("sizes are positive integers") {
  for (const char* key :
       {"hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "num_hidden_layers"}) {
    check_refused(without(llama(), key), {key, "missing"});
    for (const json& value : {json(0), json(-8), json(1.5), json(8.0), json("8"), json(true), json::array({8}),
                              json(18446744073709551615u)}) {
      check_refused(with(llama(), {{key, value}}), {key});
    }
  }
  for (const char* key : {"num_key_value_heads", "head_dim", "max_position_embeddings"}) {
    check_refused(with(llama(), {{key, 0}}), {key});
  }
}

TEST_CASE("numbers out of range are refused") {
  check_refused(with(llama(), {{"rms_norm_eps", -1e-5}}), {"rms_norm_eps", "-1e-05"});
  check_refused(with(llama(), {{"rms_norm_eps", 0}}), {"rms_norm_eps"});
  check_refused(with(llama(), {{"initializer_range", -0.02}}), {"initializer_range"});
  check_refused(with(llama(), {{"rope_theta", 0}}), {"rope_theta"});
  check_refused(with(llama(), {{"tie_word_embeddings", 1}}), {"tie_word_embeddings"});
}

TEST_CASE("heads must fit together") {
  check_refused(with(llama(), {{"num_key_value_heads", 3}}), {"num_attention_heads", "8", "num_key_value_heads", "3"});
  check_refused(with(llama(), {{"num_key_value_heads", 16}}), {"num_key_value_heads", "16"});
  check_refused(with(llama(), {{"head_dim", 7}}), {"head_dim", "7", "even"});
  check_refused(with(llama(), {{"num_attention_heads", 6}}), {"head_dim", "64", "6"});
  check_refused(without(qwen3(), "head_dim"), {"head_dim", "128"});
}

TEST_CASE("sizes whose products overflow are refused") {
  const std::int64_t huge = std::int64_t{1} << 62, large = std::int64_t{1} << 40;
  check_refused(with(llama(), {{"hidden_size", huge}}), {"hidden_size", std::to_string(huge)});
  check_refused(with(llama(), {{"hidden_size", large}, {"vocab_size", large}}), {"hidden_size", "vocab_size"});
  check_refused(with(llama(), {{"intermediate_size", large}, {"hidden_size", 1 << 20}}), {"intermediate_size"});
  check_refused(with(llama(), {{"num_attention_heads", large}, {"head_dim", large}, {"num_key_value_heads", 1}}),
                {"num_attention_heads", "head_dim"});
  check_refused(with(llama(), {{"num_hidden_layers", large}}), {"num_hidden_layers"});
  check_refused(
      with(llama(), {{"num_hidden_layers", 99'999}, {"hidden_size", 1 << 24}, {"intermediate_size", 1 << 24}}),
      {"num_hidden_layers", "99999"});
}

TEST_CASE("the file's text is kept as read") {
  const std::string text = "\n " + llama().dump(3) + " ";
  CHECK(parse_model_spec(text, "c.json").config_json == text);
}

TEST_CASE("a path that holds no config is refused by its name") {
  CHECK_THROWS_AS(read_model_spec("tests/data/no_such_folder"), UsageError);
  CHECK_THROWS_WITH_AS(read_model_spec("tests/spec"),
                       "[spec] tests/spec: there is no config.json in this folder; give a Hugging Face model folder",
                       UsageError);
}
