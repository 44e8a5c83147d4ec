// Damaged files, made from valid ones by a seeded generator: each is read or refused with a UsageError in one line.
// Anything else - another exception, a read out of bounds under AddressSanitizer - fails.
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/temporary_folder.h"
#include "octavo/base/error.h"
#include "octavo/checkpoint/model_folder.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"

using namespace octavo;

namespace {

const std::string kBad = "tests/data/bad/";

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // One to four changes; `other` lends material.
  std::string damage(std::string text, const std::string& other) {
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text, other);
    return text;
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

 private:
  void change(std::string& text, const std::string& other) {
    constexpr std::array kNumbers = {"0",
                                     "-1",
                                     "1",
                                     "2",
                                     "7",
                                     "1e9",
                                     "0.5",
                                     "2147483648",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "1e400",
                                     "null",
                                     "true",
                                     "\"8\"",
                                     "[]",
                                     "{}",
                                     "[[[[]]]]"};
    // The header and config are at the front: most damage should be there.
    const std::size_t place = below(below(2) == 0 ? text.size() : std::min<std::size_t>(text.size(), 2000));
    switch (below(8)) {
      case 0:
        if (!text.empty()) text[place] = static_cast<char>(text[place] ^ (1 << below(8)));
        break;
      case 1:
        if (!text.empty()) text[place] = static_cast<char>(below(256));
        break;
      case 2:
        text.resize(place);
        break;
      case 3:
        text.insert(place, other.substr(below(other.size()), below(60)));
        break;
      case 4:
        text.erase(place, below(60));
        break;
      case 5:
        text.insert(place, text.substr(below(text.size()), below(200)));
        break;
      default: {  // a number, from the one after `place`
        const std::size_t begin = text.find_first_of("0123456789", place);
        if (begin == text.npos) break;
        const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
        text.replace(begin, end - begin, kNumbers[below(kNumbers.size())]);
      }
    }
  }
  std::mt19937_64 random_;
};

// Puts the true length of the JSON into the first eight bytes, as far as the old length tells where it ends.
void mend_header_length(std::string& bytes, std::size_t original_size, std::size_t original_header) {
  if (bytes.size() < 8) return;
  const auto grown = static_cast<std::int64_t>(bytes.size()) - static_cast<std::int64_t>(original_size);
  const std::int64_t length = std::max<std::int64_t>(0, static_cast<std::int64_t>(original_header) + grown);
  for (int i = 0; i < 8; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xFF);
}

// Runs `use` and counts what it lets through. True if it returned.
template <class Use>
bool survives(Use use) {
  try {
    use();
    return true;
  } catch (const UsageError& error) {
    const std::string message = error.what();
    REQUIRE(message.find('\n') == message.npos);
    REQUIRE(message.size() < 2000);
    return false;
  }
}

void read_everything(const SafetensorsFile& file) {
  unsigned sum = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    for (const std::byte byte : file.bytes(tensor)) sum += std::to_integer<unsigned>(byte);
    if (!is_weight_type(tensor.type)) continue;
    std::vector<float> values(static_cast<std::size_t>(tensor.num_elements()));
    file.read_as_float(tensor.name, 0, values);
    std::vector<double> doubles(values.size());
    file.read_as_double(tensor.name, 0, doubles);
    first_not_finite(tensor.type, file.bytes(tensor));
  }
  CHECK(sum < 0xFFFFFFFFu);
}

}  // namespace

TEST_CASE("a damaged safetensors file is read or refused") {
  const std::vector<std::string> originals = {file_bytes(kBad + "good-llama/model.safetensors"),
                                              file_bytes(kBad + "good-metadata-and-unsorted/model.safetensors"),
                                              file_bytes(kBad + "good-qwen35/model.safetensors")};
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "t.safetensors";
  Mutator mutator(20240601);
  int num_read = 0, num_refused = 0;
  for (int i = 0; i < 12'000; ++i) {
    const std::string& original = originals[mutator.below(originals.size())];
    std::string bytes = mutator.damage(original, originals[mutator.below(originals.size())]);
    const std::size_t header = static_cast<unsigned char>(original[0]) + 256u * static_cast<unsigned char>(original[1]);
    if (mutator.below(3) > 0) mend_header_length(bytes, original.size(), header);
    write_bytes(path, bytes);
    const bool read = survives([&path] { read_everything(SafetensorsFile(path)); });
    ++(read ? num_read : num_refused);
  }
  CHECK(num_read > 100);  // damage in the data alone leaves a valid file
  CHECK(num_refused > 1000);
}

TEST_CASE("a damaged config.json is read or refused") {
  const std::string kSmallMoe = R"({"model_type": "qwen3_moe", "hidden_size": 8, "vocab_size": 16, "head_dim": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12,
    "moe_intermediate_size": 6, "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": true,
    "decoder_sparse_step": 1, "mlp_only_layers": [1], "router_aux_loss_coef": 0.01, "rope_theta": 10000.0})";
  const std::vector<std::string> originals = {
      file_bytes(kBad + "good-llama/config.json"),          file_bytes("tests/data/configs/llama-3.1-405b.json"),
      file_bytes("tests/data/configs/qwen3-8b.json"),       file_bytes("tests/data/configs/smollm2-135m.json"),
      file_bytes("tests/data/cases/qwen35-vl/config.json"), file_bytes(kBad + "good-qwen35/config.json"),
      file_bytes(kBad + "good-mixtral/config.json"),        kSmallMoe};
  Mutator mutator(20240602);
  int num_read = 0, num_refused = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::string& original = originals[mutator.below(originals.size())];
    const std::string text = mutator.damage(original, originals[mutator.below(originals.size())]);
    const bool read = survives([&text] {
      const ModelSpec model = parse_model_spec(text, "config.json");
      CHECK(num_parameters(model) > 0);
      const std::array<std::int64_t, 1> lengths = {1};
      CHECK(training_flops(model, lengths) > 0);
    });
    ++(read ? num_read : num_refused);
  }
  CHECK(num_read > 100);
  CHECK(num_refused > 1000);
}

TEST_CASE("a model folder with a damaged index, config or shard is opened or refused") {
  const TemporaryFolder folder;
  std::filesystem::copy(kBad + "good-sharded", folder.path());
  const std::vector<std::string> names = {"config.json", "model.safetensors.index.json",
                                          "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
  Mutator mutator(20240603);
  int num_read = 0, num_refused = 0;
  for (int i = 0; i < 6'000; ++i) {
    const std::string& name = names[mutator.below(names.size())];
    const std::string original = file_bytes(folder.path() / name);
    write_bytes(folder.path() / name, mutator.damage(original, original));
    const bool read = survives([&folder] { ModelFolder(folder.path()).check_weights(); });
    ++(read ? num_read : num_refused);
    write_bytes(folder.path() / name, original);
  }
  CHECK(num_read > 100);
  CHECK(num_refused > 1000);
  CHECK_NOTHROW(ModelFolder(folder.path()).check_weights());
}
