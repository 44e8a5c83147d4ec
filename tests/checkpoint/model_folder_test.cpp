#include "octavo/checkpoint/model_folder.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/temporary_folder.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

using namespace octavo;
namespace fs = std::filesystem;

namespace {

const char* kConfig = R"({"model_type": "qwen3", "hidden_size": 8, "intermediate_size": 12, "vocab_size": 16,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "num_hidden_layers": 1,
  "tie_word_embeddings": true})";

// Writes the tied model with an lm_head.weight of `type`, whose elements are those of the embedding, [2, 0] plus
// `extra`.
void write_with_head(const fs::path& folder, StorageType embedding_type, StorageType head_type, float extra,
                     std::vector<std::int64_t> head_shape = {16, 8}) {
  write_bytes(folder / "config.json", kConfig);
  std::vector<StoredTensor> tensors;
  const bool head_first = storage_bits(head_type) > storage_bits(embedding_type);
  const StoredTensor head = {.name = "lm_head.weight", .type = head_type, .shape = std::move(head_shape)};
  if (head_first) tensors.push_back(head);
  for (const ParameterSpec& parameter : parameters(parse_model_spec(kConfig, "c"))) {
    tensors.push_back({.name = parameter.name, .type = embedding_type, .shape = parameter.shape});
  }
  if (!head_first) tensors.push_back(head);
  SafetensorsWriter writer(folder / "model.safetensors", tensors);
  for (const StoredTensor& tensor : tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.num_elements()), 0.25f);
    if (tensor.name == "lm_head.weight") values[16] += extra;
    writer.append(std::span<const float>(values));
  }
  writer.commit();
}

std::string complaint(const fs::path& folder) {
  try {
    ModelFolder{folder};
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a folder gives each parameter's values, whole or in part") {
  const ModelFolder folder("tests/data/bad/good-llama");
  for (const ParameterSpec& parameter : parameters(folder.spec())) {
    CAPTURE(parameter.name);
    CHECK(folder.stored(parameter.name).shape == parameter.shape);
    CHECK(folder.stored(parameter.name).type == StorageType::F32);
    const auto total = static_cast<std::size_t>(folder.stored(parameter.name).num_elements());
    std::vector<float> whole(total), part(3);
    std::vector<double> doubles(total);
    folder.read_as_float(parameter.name, 0, whole);
    folder.read_as_float(parameter.name, 4, part);
    folder.read_as_double(parameter.name, 0, doubles);
    CHECK(part == std::vector<float>(whole.begin() + 4, whole.begin() + 7));
    CHECK(doubles == std::vector<double>(whole.begin(), whole.end()));
  }
  CHECK_THROWS_AS(folder.stored("model.nothing"), InternalError);
}

TEST_CASE("a text model is read out of a file that also holds a vision tower and a block for multi-token prediction") {
  const ModelFolder folder("tests/data/cases/qwen35-vl");
  folder.check_weights();
  CHECK(num_parameters(folder.spec()) == 211'024);
  CHECK(folder.stored("model.language_model.layers.0.linear_attn.A_log").type == StorageType::F32);
}

TEST_CASE("the head of a tied model may be in the file if it is the embedding") {
  const TemporaryFolder folder;
  write_with_head(folder.path(), StorageType::F32, StorageType::F32, 0);
  CHECK(complaint(folder.path()) == "");
  write_with_head(folder.path(), StorageType::F32, StorageType::BF16, 0);
  CHECK(complaint(folder.path()) == "");
  write_with_head(folder.path(), StorageType::BF16, StorageType::F32, 0);
  CHECK(complaint(folder.path()) == "");
}

TEST_CASE("the head of a tied model with other values or another shape is refused") {
  const TemporaryFolder folder;
  for (const StorageType type : {StorageType::F32, StorageType::BF16}) {
    write_with_head(folder.path(), StorageType::F32, type, 0.5f);
    const std::string message = complaint(folder.path());
    CAPTURE(message);
    CHECK(message.find("differs from model.embed_tokens.weight at [2, 0]: 0.75 and 0.25") != message.npos);
  }
  write_with_head(folder.path(), StorageType::F32, StorageType::F32, 0, {8, 16});
  CHECK(complaint(folder.path()).find("transposed") != std::string::npos);
}

TEST_CASE("a NaN head equal to a NaN embedding does not hide the NaN") {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "config.json", kConfig);
  const ModelSpec spec = parse_model_spec(kConfig, "c");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write_model_folder(folder.path() / "m", spec, [nan](const ParameterSpec&, std::int64_t, std::span<float> out) {
    std::fill(out.begin(), out.end(), nan);
  });
  CHECK_NOTHROW(ModelFolder(folder.path() / "m"));
  CHECK_THROWS_AS(ModelFolder(folder.path() / "m").check_weights(), UsageError);
}

TEST_CASE("a folder with both a single file and an index is refused") {
  const TemporaryFolder folder;
  fs::copy("tests/data/bad/good-sharded", folder.path());
  fs::copy_file("tests/data/bad/good-llama/model.safetensors", folder.path() / "model.safetensors");
  CHECK(complaint(folder.path()).find("holds both") != std::string::npos);
}

TEST_CASE("a tensor in two shards is refused") {
  const TemporaryFolder folder;
  fs::copy("tests/data/bad/good-sharded", folder.path());
  const std::string index = file_bytes(folder.path() / "model.safetensors.index.json");
  nlohmann::json json = nlohmann::json::parse(index);
  json["weight_map"]["no.such.weight"] = "third.safetensors";
  write_bytes(folder.path() / "model.safetensors.index.json", json.dump());
  fs::copy_file(folder.path() / "model-00001-of-00002.safetensors", folder.path() / "third.safetensors");
  CHECK(complaint(folder.path()).find("model.safetensors.index.json: \"third.safetensors\" holds") !=
        std::string::npos);
}

TEST_CASE("a layer number that does not fit an integer is one layer too many") {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "config.json", kConfig);
  std::vector<StoredTensor> tensors;
  for (const ParameterSpec& parameter : parameters(parse_model_spec(kConfig, "c"))) {
    tensors.push_back({.name = parameter.name, .type = StorageType::F32, .shape = parameter.shape});
  }
  tensors.push_back({.name = "model.layers.18446744073709551616.x.weight", .type = StorageType::F32, .shape = {0}});
  SafetensorsWriter writer(folder.path() / "model.safetensors", tensors);
  for (const StoredTensor& tensor : tensors) {
    writer.append(std::span<const float>(std::vector<float>(static_cast<std::size_t>(tensor.num_elements()))));
  }
  writer.commit();
  CHECK(complaint(folder.path()).find("num_hidden_layers is 1") != std::string::npos);
}

TEST_CASE("a path that is no folder is refused") {
  CHECK_THROWS_AS(ModelFolder("tests/data/no_such_folder"), UsageError);
  CHECK_THROWS_AS(ModelFolder("tests/data/bad/good-llama/config.json"), UsageError);
}
