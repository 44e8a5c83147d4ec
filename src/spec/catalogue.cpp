#include "spec/catalogue.h"

#include <array>
#include <string_view>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

struct Entry {
  std::string_view model_type;
  ModelReader reader;
};

constexpr std::array kBuilt = {
    Entry{"llama", read_llama},
    Entry{"mixtral", read_mixtral},
    Entry{"qwen3", read_qwen3},
    Entry{"qwen3_moe", read_qwen3_moe},
    Entry{"qwen3_next", read_qwen3_next},
    Entry{"qwen3_5", read_qwen3_5},
    Entry{"qwen3_5_text", read_qwen3_5_text},
    Entry{"qwen3_5_moe", read_qwen3_5_moe},
    Entry{"qwen3_5_moe_text", read_qwen3_5_moe_text},
};

struct Missing {
  std::string_view model_type, what;
};

constexpr std::array kNotBuilt = {
    Missing{"mistral", "sliding windows"},
    Missing{"qwen2", "biases of q, k and v"},
    Missing{"qwen2_moe", "biases of q, k and v"},
    Missing{"phi3", "fused projections"},
    Missing{"gemma2", "sliding windows, capped logits and scaled embeddings"},
    Missing{"gemma3_text", "sliding windows and scaled embeddings"},
    Missing{"gpt_oss", "attention sinks and sliding windows"},
    Missing{"deepseek_v2", "a reader for latent attention"},
    Missing{"deepseek_v3", "a reader for latent attention, and routing in groups"},
    Missing{"llama4_text", "chunked attention and layers without rotary embedding"},
};

}  // namespace

ModelReader find_model_reader(const std::string& model_type, const std::string& where) {
  std::vector<std::string> names;
  for (const Entry& entry : kBuilt) {
    if (entry.model_type == model_type) return entry.reader;
    names.emplace_back(entry.model_type);
  }
  std::string problem = " is unknown";
  for (const Missing& missing : kNotBuilt) {
    if (missing.model_type == model_type) problem = cat(" is not built: it needs ", missing.what);
  }
  throw UsageError(
      cat(where, ": model_type ", in_quotes(model_type), problem, "; the types that are built: ", join(names, ", ")));
}

}  // namespace octavo
