#include "validation/ranking.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/step_time.h"
#include "validation/measured_run.h"

namespace octavo {
namespace {

using nlohmann::json;

/// "dp4.tp2.pp1.mbz8" as {"dp": 4, ...}; nullopt if anything else stands in it.
std::optional<std::map<std::string, std::int64_t>> degrees(const std::string& text) {
  std::map<std::string, std::int64_t> found;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '.' || text[at] == ' ') {
      ++at;
      continue;
    }
    std::string name, digits;
    while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0) name += text[at++];
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0 && digits.size() < 9) {
      digits += text[at++];
    }
    if (name == "mbz" || name == "mbs") name = "micro_batch";
    const bool known =
        name == "dp" || name == "tp" || name == "pp" || name == "cp" || name == "vp" || name == "micro_batch";
    if (!known || digits.empty()) return std::nullopt;
    found[name] = std::stoll(digits);
  }
  if (found.empty()) return std::nullopt;
  return found;
}

std::int64_t get(const json& input, const char* key, std::int64_t otherwise) {
  return input.contains(key) && input[key].is_number_integer() ? input[key].get<std::int64_t>() : otherwise;
}

/// The case of the group that a candidate differs least from: of most micro-batches.
const json* template_of(const json& item, const json& cases) {
  const json* best = nullptr;
  for (const json& other : cases) {
    if (!other.is_object() || other.value("kind", "") != "measurement" || !other.contains("group") ||
        other["group"] != item["group"] || !other.contains("input")) {
      continue;
    }
    if (best == nullptr || get(other["input"], "micro_batches", 0) > get((*best)["input"], "micro_batches", 0)) {
      best = &other;
    }
  }
  return best;
}

/// Seconds per token of one accelerator.
double price(const json& input, const json& models, std::string& why) {
  const std::variant<MeasuredRun, std::string> found = measured_run(input, models, "");
  if (const auto* reason = std::get_if<std::string>(&found)) {
    why = *reason;
    return 0;
  }
  const MeasuredRun& run = std::get<MeasuredRun>(found);
  const FoundRules rules = find_time_rules(run.software, run.cluster.accelerator.name);
  const StepTime step = TimeModel(run.model, run.job, run.cluster, rules.rules).step(run.plan);
  return run.cluster.world_size() / step.tokens_per_second;
}

}  // namespace

RankingResult rank(const json& item, const json& cases, const json& models) {
  RankingResult result;
  result.id = item.value("id", "");
  const json& input = item["input"];
  const json order = item.contains("expect") ? item["expect"].value("order_best_first", json::array()) : json::array();
  const json* base = template_of(item, cases);
  if (base == nullptr) {
    result.why = "no measured case of its group says the rest of the configuration";
    return result;
  }
  std::vector<std::pair<double, std::string>> priced;
  for (const json& name : order) {
    const auto found = name.is_string() ? degrees(name.get<std::string>()) : std::nullopt;
    if (!found || !input.contains("candidates")) {
      result.why = "its candidates are not written as degrees";
      return result;
    }
    json run = (*base)["input"];
    const std::int64_t per_rank = get(run, "global_batch", 0) / std::max<std::int64_t>(1, get(run, "dp", 1));
    const bool fixed_batch = found->contains("micro_batch");
    for (const char* key : {"tp", "pp", "cp", "dp"}) run[key] = found->contains(key) ? found->at(key) : 1;
    run["vp"] = found->contains("vp") ? json(found->at("vp")) : json(nullptr);
    if (fixed_batch) run["micro_batch"] = found->at("micro_batch");
    if (!fixed_batch) run["global_batch"] = per_rank * found->at("dp");  // as many sequences per data rank
    try {
      priced.emplace_back(price(run, models, result.why), name.get<std::string>());
    } catch (const UsageError& error) {
      result.why = error.what();
    }
    if (!result.why.empty()) return result;
  }
  if (priced.size() < 2) {
    result.why = "fewer than two candidates";
    return result;
  }
  int wrong = 0, pairs = 0;
  for (std::size_t a = 0; a < priced.size(); ++a) {
    for (std::size_t b = a + 1; b < priced.size(); ++b, ++pairs) wrong += priced[a].first > priced[b].first;
  }
  result.tau = 1 - 2.0 * wrong / pairs;
  const std::string best = priced.front().second;
  std::stable_sort(priced.begin(), priced.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [time, name] : priced) result.predicted.push_back(name);
  result.best_is_right = result.predicted.front() == best;
  return result;
}

}  // namespace octavo
