#include <algorithm>
#include <array>
#include <cmath>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/flops.h"
#include "octavo/validation/golden_model.h"
#include "validation/answers.h"

namespace octavo {
namespace {

using nlohmann::json;

/// Training FLOPs per token. Causal: half of the square of query and key pairs; full: all of it.
json per_token(const json& models, const json& input, const json& expect) {
  const std::string name = input.at("model");
  const std::optional<ModelSpec> model = find_golden_model(models, name);
  if (!model) throw UsageError(cat("the dimensions of model ", in_quotes(name), " are unknown"));
  const std::array lengths{input.at("seq").get<std::int64_t>()};
  if (lengths[0] < 1) throw UsageError("its sequence has no tokens");
  const auto tokens = static_cast<double>(lengths[0]);
  const Flops causal = 3 * forward_flops(*model, lengths, CausalPairs::HalfSquare) / tokens;
  Flops core = 0;
  for (const LayerSpec& layer : model->layers) {
    core += 3 * attention_core_flops(layer, lengths[0], CausalPairs::HalfSquare) / tokens;
  }
  json out{{"flop_per_token_causal", causal}, {"flop_per_token_full", causal + core}};
  // What was published is no figure of ours, but how it was counted is.
  constexpr double kRounding = 0.02;
  for (const char* key : {"published_median", "published_min", "published_max", "rows"}) {
    out[key] = not_ours();
  }
  if (expect.contains("published_median") && expect["published_median"].is_number()) {
    const double published = expect["published_median"];
    const double from_causal = std::abs(published / causal - 1), from_full = std::abs(published / (causal + core) - 1);
    out["convention_that_fits"] = std::min(from_causal, from_full) > kRounding ? "neither"
                                  : from_causal < from_full                    ? "causal"
                                                                               : "full";
  }
  return out;
}

}  // namespace

Answer flops_answer(const json& file) {
  return [models = file.is_object() ? file.value("models", json::object()) : json::object()](const json& item) -> json {
    if (!item["expect"].contains("flop_per_token_causal")) return {};
    return per_token(models, item["input"], item["expect"]);
  };
}

}  // namespace octavo
