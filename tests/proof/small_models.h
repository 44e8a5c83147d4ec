// Models small enough that a proof takes milliseconds, with every feature that the engine has.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "octavo/train/model_source.h"

namespace octavo::testing {

inline std::string config_text(const std::string& model_type, int heads, int kv_heads, bool tied, int vocab_size = 61,
                               int features = 40) {
  return R"({"model_type": ")" + model_type + R"(", "hidden_size": 24, "intermediate_size": )" +
         std::to_string(features) + R"(, "num_hidden_layers": 2,
    "num_attention_heads": )" +
         std::to_string(heads) + R"(, "num_key_value_heads": )" + std::to_string(kv_heads) + R"(,
    "head_dim": 8, "vocab_size": )" +
         std::to_string(vocab_size) + R"(, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "max_position_embeddings": 64, "initializer_range": 0.2, "tie_word_embeddings": )" +
         (tied ? "true" : "false") + "}";
}

/// A config.json of its own, gone at the end.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("octavo-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".json");
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace octavo::testing
