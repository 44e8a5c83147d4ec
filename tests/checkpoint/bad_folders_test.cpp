// Every malformed folder gets its verdict: one UsageError that names the file at fault.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/temporary_folder.h"
#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/checkpoint/model_folder.h"

using namespace octavo;

namespace {

const std::string kBad = "tests/data/bad";

// The message of the UsageError; "" if the folder is accepted. Another exception escapes and fails the test.
std::string verdict(const std::string& folder) {
  try {
    ModelFolder(folder).check_weights();
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

// model_type in the folder's config.json; "" if that is not readable.
std::string model_type(const std::string& folder) {
  const nlohmann::json config = nlohmann::json::parse(file_bytes(folder + "/config.json"), nullptr, false);
  return config.is_object() ? config.value("model_type", "") : "";
}

bool is_built(const std::string& type) {
  return type != "gpt2";
}

}  // namespace

TEST_CASE("each malformed folder is refused in one line that names the file at fault, each good one loads") {
  const std::string file = kBad + "/expected.json";
  const nlohmann::json expected = parse_json(read_text_file(file, file), file);
  int num_rejected = 0, num_accepted = 0;
  for (const auto& item : expected.items()) {
    const std::string folder = kBad + "/" + item.key();
    const std::string type = model_type(folder);
    const std::string message = verdict(folder);
    CAPTURE(folder);
    CAPTURE(message);
    if (item.value()["verdict"] == "accept" && is_built(type)) {
      ++num_accepted;
      CHECK(message == "");
      continue;
    }
    ++num_rejected;
    CHECK(message.find('\n') == message.npos);
    std::string where = is_built(type) ? item.value()["where"].get<std::string>() : "config.json";
    if (item.key() == "tensor-bias-missing") {  // refused for its config already, but the weights are named
      CHECK(message.find(where) != message.npos);
      where = "config.json";
    }
    const std::string place = where == "." ? folder + ":" : folder + "/" + where + ":";
    CHECK(message.substr(message.find("] ") + 2, place.size()) == place);
    if (!is_built(type)) CHECK(message.find(cat("\"", type, "\"")) != message.npos);
  }
  CHECK(num_accepted == 7);
  CHECK(num_rejected == 70);
}

TEST_CASE("the refusals say what is wrong") {
  const std::map<std::string, std::vector<std::string>> words = {
      {"config-activation", {"hidden_act", "gelu"}},
      {"config-eps-negative", {"rms_norm_eps"}},
      {"config-fraction", {"num_hidden_layers", "1.5"}},
      {"config-gdn-heads", {"linear_num_value_heads", "3", "linear_num_key_heads", "2"}},
      {"config-heads-not-divisible", {"num_attention_heads", "4", "num_key_value_heads", "3"}},
      {"config-interval-zero", {"full_attention_interval", "0"}},
      {"config-layer-types-disagree", {"layer_types[1]", "full_attention_interval", "4"}},
      {"config-layer-types-length", {"layer_types", "3", "4"}},
      {"config-layer-types-unknown", {"layer_types[0]", "spiral_attention"}},
      {"config-key-missing", {"hidden_size", "missing"}},
      {"config-negative-size", {"hidden_size", "-8"}},
      {"config-number-as-text", {"hidden_size", "\"8\""}},
      {"config-odd-head-dim", {"head_dim", "3"}},
      {"config-rope-llama3-incomplete", {"rope_scaling", "factor"}},
      {"config-rope-type", {"spiral"}},
      {"config-size-overflow", {"hidden_size", "4611686018427387904"}},
      {"config-syntax", {"line"}},
      {"config-text-config-missing", {"qwen3_5", "text_config"}},
      {"config-tie-disagrees", {"tie_word_embeddings", "false", "true", "text_config"}},
      {"config-topk-above-experts", {"num_experts_per_tok", "3", "num_local_experts", "2"}},
      {"config-unknown-architecture", {"gpt2"}},
      {"config-zero-kv-heads", {"num_key_value_heads", "0"}},
      {"config-zero-layers", {"num_hidden_layers", "0"}},
      {"index-file-missing", {"model-00002-of-00002.safetensors", "does not exist"}},
      {"index-path-outside", {"../good-llama/model.safetensors"}},
      {"index-tensor-not-listed", {"lm_head.weight", "does not list"}},
      {"index-without-map", {"weight_map"}},
      {"index-wrong-file", {"lm_head.weight", "model-00002-of-00002.safetensors"}},
      {"st-dtype-missing", {"q_proj", "dtype"}},
      {"st-dtype-unknown", {"q_proj", "F33"}},
      {"st-header-length-huge", {"18446744073709551615"}},
      {"st-header-longer-than-file", {"100000"}},
      {"st-header-not-utf8", {"UTF-8"}},
      {"st-name-twice", {"q_proj", "twice"}},
      {"st-offsets-hole", {"q_proj", "32 bytes"}},
      {"st-offsets-negative", {"q_proj", "negative"}},
      {"st-offsets-outside", {"q_proj", "beyond the data"}},
      {"st-offsets-overlap", {"q_proj", "overlap"}},
      {"st-offsets-reversed", {"q_proj", "before the begin"}},
      {"st-offsets-three-numbers", {"q_proj", "two numbers"}},
      {"st-shape-fraction", {"q_proj", "16.5"}},
      {"st-shape-negative", {"q_proj", "-16"}},
      {"st-shape-overflow", {"q_proj", "4611686018427387904"}},
      {"st-size-against-shape", {"q_proj", "508", "512"}},
      {"st-trailing-bytes", {"16 bytes"}},
      {"tensor-bias-missing", {"attention_bias"}},
      {"tensor-conv-two-dims", {"conv1d", "[20, 4]", "[20, 1, 4]"}},
      {"tensor-expert-missing", {"experts.1.w3", "missing"}},
      {"tensor-infinity", {"model.norm.weight", "infinity", "[5]"}},
      {"tensor-integer-dtype", {"q_proj", "I32"}},
      {"tensor-layer-too-many", {"model.layers.1.", "num_hidden_layers is 1"}},
      {"tensor-lm-head-missing", {"lm_head.weight", "tie_word_embeddings"}},
      {"tensor-missing", {"up_proj", "missing"}},
      {"tensor-nan", {"q_proj", "NaN", "[0, 3]"}},
      {"tensor-tied-head-differs", {"tie_word_embeddings", "lm_head.weight", "model.embed_tokens.weight"}},
      {"tensor-transposed", {"q_proj", "[8, 16]", "[16, 8]", "transposed"}},
      {"tensor-unknown-name", {"extra_proj"}},
      {"tensor-vocab-larger-in-config", {"model.embed_tokens.weight", "[16, 8]", "[32, 8]"}},
      {"tensor-wrong-shape", {"gate_proj", "[11, 8]", "[12, 8]"}},
  };
  for (const auto& [name, parts] : words) {
    const std::string message = verdict(kBad + "/" + name);
    CAPTURE(message);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(message.find(part) != message.npos);
    }
  }
}
