#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "checkpoint/temporary_folder.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/checkpoint/model_folder.h"
#include "octavo/spec/parameters.h"

using namespace octavo;
namespace fs = std::filesystem;

namespace {

ModelSpec small_model() {
  return read_model_spec("tests/data/bad/good-llama");
}

// A value for each element that bfloat16 holds exactly.
float element(const ParameterSpec& parameter, std::int64_t index) {
  return static_cast<float>(static_cast<std::int64_t>(parameter.name.size()) + index % 128 - 64);
}

void fill(const ParameterSpec& parameter, std::int64_t first, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(parameter, first + static_cast<std::int64_t>(i));
}

void check_holds_model(const fs::path& path, StorageType type) {
  const ModelFolder folder(path);
  folder.check_weights();
  for (const ParameterSpec& parameter : parameters(folder.spec())) {
    CAPTURE(parameter.name);
    CHECK(folder.stored(parameter.name).type == type);
    std::vector<float> values(static_cast<std::size_t>(folder.stored(parameter.name).num_elements()));
    folder.read_as_float(parameter.name, 0, values);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      wrong += values[i] != element(parameter, static_cast<std::int64_t>(i));
    }
    CHECK(wrong == 0);
  }
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("a written folder is read back, in float32 and in bfloat16") {
  const TemporaryFolder folder;
  for (const StorageType type : {StorageType::F32, StorageType::BF16}) {
    const fs::path path = folder.path() / "deep" / "m" / "";
    write_model_folder(path, small_model(), fill, {.type = type});
    check_holds_model(path, type);
    CHECK(names_in(path) == std::set<std::string>{"config.json", "model.safetensors"});
    CHECK(names_in(path.parent_path().parent_path()) == std::set<std::string>{"m"});
  }
}

TEST_CASE("the config keeps its keys and gets the dtype of the files") {
  const TemporaryFolder folder;
  write_model_folder(folder.path() / "m", small_model(), fill, {.type = StorageType::BF16});
  nlohmann::json before = nlohmann::json::parse(small_model().config_json);
  const nlohmann::json after = nlohmann::json::parse(file_bytes(folder.path() / "m" / "config.json"));
  CHECK(before["torch_dtype"] == "float32");
  before["torch_dtype"] = "bfloat16";
  CHECK(after == before);

  nlohmann::json newer = before;
  newer.erase("torch_dtype");
  newer["dtype"] = "float32";
  write_model_folder(folder.path() / "n", parse_model_spec(newer.dump(), "c"), fill, {.type = StorageType::BF16});
  newer["dtype"] = "bfloat16";
  CHECK(nlohmann::json::parse(file_bytes(folder.path() / "n" / "config.json")) == newer);
}

TEST_CASE("a model above the shard limit is cut into shards with an index") {
  const TemporaryFolder folder;
  for (const Bytes limit : {1, 600, 2000}) {
    CAPTURE(limit);
    write_model_folder(folder.path() / "m", small_model(), fill, {.max_shard_bytes = limit});
    check_holds_model(folder.path() / "m", StorageType::F32);
    const nlohmann::json index =
        nlohmann::json::parse(file_bytes(folder.path() / "m" / "model.safetensors.index.json"));
    CHECK(index["metadata"]["total_size"] == 4 * num_parameters(small_model()));
    std::set<std::string> shards;
    for (const auto& item : index["weight_map"].items()) shards.insert(item.value());
    CHECK(names_in(folder.path() / "m").size() == shards.size() + 2);
    if (limit == 1) CHECK(shards.size() == parameters(small_model()).size());
    CHECK(shards.begin()->substr(0, 15) == "model-00001-of-");
    for (const std::string& shard : shards) {
      const SafetensorsFile file(folder.path() / "m" / shard);
      CHECK((file.tensors().size() == 1 || file.tensors().back().end <= limit));
    }
  }
}

TEST_CASE("elements are asked for in whole rows, in order, a few megabytes at a time") {
  const nlohmann::json wide = {{"model_type", "llama"}, {"hidden_size", 2048},      {"intermediate_size", 16},
                               {"vocab_size", 2500},    {"num_attention_heads", 2}, {"head_dim", 4},
                               {"num_hidden_layers", 1}};
  const TemporaryFolder folder;
  std::string name;
  std::int64_t next = 0;
  std::size_t largest = 0;
  const auto read = [&](const ParameterSpec& parameter, std::int64_t first, std::span<float> out) {
    if (parameter.name != name) next = 0;
    name = parameter.name;
    CHECK(first == next);
    CHECK(static_cast<std::int64_t>(out.size()) % parameter.shape.back() == 0);
    next += static_cast<std::int64_t>(out.size());
    largest = std::max(largest, out.size());
    fill(parameter, first, out);
  };
  write_model_folder(folder.path() / "m", parse_model_spec(wide.dump(), "c"), read);
  CHECK(largest <= 1u << 20);
  check_holds_model(folder.path() / "m", StorageType::F32);
}

TEST_CASE("a model folder is replaced, its tokenizer files stay") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "m";
  write_model_folder(path, small_model(), fill, {.max_shard_bytes = 600});
  write_bytes(path / "tokenizer.json", "{}");
  write_model_folder(path, small_model(), fill);
  CHECK(names_in(path) == std::set<std::string>{"config.json", "model.safetensors", "tokenizer.json"});
  CHECK(file_bytes(path / "tokenizer.json") == "{}");
  CHECK(names_in(folder.path()) == std::set<std::string>{"m"});
}

TEST_CASE("a folder that holds anything else is not touched") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "m";
  fs::create_directory(path);
  write_model_folder(path, small_model(), fill);  // an empty folder is fine
  for (const char* name : {"thesis.tex", "optimizer.safetensors"}) {
    write_bytes(path / name, "work");
    CHECK_THROWS_AS(write_model_folder(path, small_model(), fill), UsageError);
    CHECK(file_bytes(path / name) == "work");
    fs::remove(path / name);
  }
  fs::create_directory(path / "tokenizer.json");
  CHECK_THROWS_AS(write_model_folder(path, small_model(), fill), UsageError);
  fs::remove(path / "tokenizer.json");
  fs::remove(path / "config.json");  // weights alone could be anybody's
  CHECK_THROWS_AS(write_model_folder(path, small_model(), fill), UsageError);
  CHECK(names_in(path) == std::set<std::string>{"model.safetensors"});
  write_bytes(folder.path() / "file", "x");
  CHECK_THROWS_AS(write_model_folder(folder.path() / "file", small_model(), fill), UsageError);
  CHECK_THROWS_AS(write_model_folder(folder.path() / "file" / "m", small_model(), fill), UsageError);
  CHECK(names_in(folder.path()) == std::set<std::string>{"file", "m"});
}

TEST_CASE("a failure on the way leaves the old folder whole and nothing beside it") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "m";
  write_model_folder(path, small_model(), fill);
  int calls = 0;
  const auto failing = [&calls](const ParameterSpec&, std::int64_t, std::span<float>) {
    if (++calls == 5) throw std::runtime_error("lost");
  };
  CHECK_THROWS_WITH_AS(write_model_folder(path, small_model(), failing, {.max_shard_bytes = 600}), "lost",
                       std::runtime_error);
  CHECK(names_in(folder.path()) == std::set<std::string>{"m"});
  check_holds_model(path, StorageType::F32);
}

TEST_CASE("a model whose config describes another one is our own bug") {
  const TemporaryFolder folder;
  ModelSpec model = small_model();
  model.vocab_size += 1;
  CHECK_THROWS_AS(write_model_folder(folder.path() / "m", model, fill), InternalError);
  CHECK_THROWS_AS(write_model_folder(folder.path() / "m", small_model(), fill, {.type = StorageType::F16}),
                  InternalError);
  CHECK(names_in(folder.path()).empty());
}
