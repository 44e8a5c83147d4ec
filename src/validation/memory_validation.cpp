#include "octavo/validation/memory_validation.h"

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/validation/framework_memory.h"
#include "validation/golden_case.h"
#include "validation/golden_run.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20, kGiB = 1 << 30, kGB = 1e9;

/// A figure that a peak or a state is compared with.
struct Quantity {
  const char* key;
  enum class Kind { Allocated, Reserved, Static } kind;
  double unit;
};
const Quantity kQuantities[] = {
    {"peak_allocated_gib_max_rank", Quantity::Kind::Allocated, kGiB},
    {"peak_allocated_gib", Quantity::Kind::Allocated, kGiB},
    {"peak_allocated_mib", Quantity::Kind::Allocated, kMiB},
    {"peak_reserved_gib_max_rank", Quantity::Kind::Reserved, kGiB},
    {"peak_reserved_gib", Quantity::Kind::Reserved, kGiB},
    {"static_mib", Quantity::Kind::Static, kMiB},
    {"peak_memory_gb", Quantity::Kind::Allocated, kGB},
    {"memory_gb", Quantity::Kind::Allocated, kGB},
    {"gpu_memory_high", Quantity::Kind::Allocated, kGiB},  // what DeepSpeed prints as GB
    {"peak_gib_before", Quantity::Kind::Allocated, kGiB},
    {"peak_gib_after", Quantity::Kind::Allocated, kGiB},
};
constexpr double kStaticTolerance = 0.03;

/// The longest sequence whose peak stays within the GPU's memory.
double longest_sequence(const GoldenRun& golden, double capacity) {
  FrameworkRun run = golden.run;
  std::int64_t fits = 0, too_long = std::int64_t{1} << 32;
  while (too_long - fits > 1) {
    run.sequence_length = fits + (too_long - fits) / 2;
    const auto peak = static_cast<double>(framework_peak(*golden.rules, run).total());
    (peak <= capacity ? fits : too_long) = run.sequence_length;
  }
  return static_cast<double>(fits);
}

/// "bf16 weight 2, fp32 grad 4, optimizer 8, master 4": the sum of the numbers that end its parts.
std::optional<double> sum_of_last_numbers(const std::string& text) {
  double sum = 0;
  for (const std::string& part : split(text, ',')) {
    std::size_t begin = part.size();
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(part[begin - 1])) != 0) --begin;
    if (begin == part.size() || part.size() - begin > 6) return std::nullopt;
    sum += std::stod(part.substr(begin));
  }
  return sum;
}

class Case {
 public:
  Case(const json& each, const json& models) : each_(each), models_(models) {
    if (!each.is_object() || !each.contains("id") || !each["id"].is_string() || !each.contains("input") ||
        !each["input"].is_object() || !each.contains("expect") || !each["expect"].is_object()) {
      throw UsageError("[validation] a case of memory needs id, input and expect");
    }
  }

  std::vector<ValidationRow> rows() const {
    const std::string kind = each_.value("kind", "measurement");
    if (kind == "identity") return identities();
    if (kind == "capacity") return capacity();
    return measurements();
  }

 private:
  const json& input() const { return each_["input"]; }
  const json& expect() const { return each_["expect"]; }

  ValidationRow row(const std::string& quantity) const {
    ValidationRow row;
    row.id = each_["id"].get<std::string>();
    row.group = each_.contains("group") && each_["group"].is_string() ? each_["group"].get<std::string>() : "";
    row.quantity = quantity;
    row.published = number_or_none(expect(), quantity.c_str());
    row.tolerance = number_or_none(each_, "tolerance_rel");
    return row;
  }

  std::vector<ValidationRow> measurements() const {
    const auto read = golden_run(input(), models_);
    std::vector<ValidationRow> rows;
    for (const Quantity& quantity : kQuantities) {
      if (!expect().contains(quantity.key) || !expect()[quantity.key].is_number()) continue;
      // Where both are published, what is allocated is what can be known.
      if (quantity.kind == Quantity::Kind::Reserved && !rows.empty()) continue;
      ValidationRow result = row(quantity.key);
      if (quantity.kind == Quantity::Kind::Static) result.tolerance = kStaticTolerance;
      try {
        if (const auto* golden = std::get_if<GoldenRun>(&read)) {
          predict(*golden, quantity, result);
        } else {
          result.why = std::get<std::string>(read);
        }
      } catch (const UsageError& error) {
        result.predicted.reset();
        result.why = cat("configuration not usable: ", error.what());
      }
      rows.push_back(result);
    }
    if (rows.empty()) {
      rows.push_back(row(""));
      rows.back().why = "no published figure of a kind that is known";
    }
    return rows;
  }

  static void predict(const GoldenRun& golden, const Quantity& quantity, ValidationRow& result) {
    if (golden.run.sequence_length < 1) {
      result.why = "configuration incomplete: the sequence length is unknown";
      return;
    }
    if (quantity.kind == Quantity::Kind::Static) {
      result.predicted = static_cast<double>(framework_static_bytes(*golden.rules, golden.run)) / quantity.unit;
      result.why = cat(golden.rules->name, ": state and what lies beside it");
      return;
    }
    const MemoryEstimate peak = framework_peak(*golden.rules, golden.run);
    const double reserved = quantity.kind == Quantity::Kind::Reserved ? golden.rules->reserved : 1;
    result.predicted = static_cast<double>(peak.total()) * reserved / quantity.unit;
    result.why = cat(golden.rules->name, ": ", peak.to_string());
  }

  std::vector<ValidationRow> capacity() const {
    ValidationRow result = row("max_sequence_length");
    const auto read = golden_run(input(), models_);
    const double memory = number_or_none(input(), "gpu_memory_gb") * kGB;
    if (const auto* why = std::get_if<std::string>(&read)) {
      result.why = *why;
    } else if (memory <= 0) {
      result.why = "configuration incomplete: the GPU's memory is unknown";
    } else if (result.published <= 0) {
      result.why = "no published figure of a kind that is known";
    } else {
      const auto& golden = std::get<GoldenRun>(read);
      result.predicted = longest_sequence(golden, memory);
      result.why = cat(golden.rules->name, ": the longest sequence whose peak fits");
    }
    return {result};
  }

  /// Figures that follow from the row itself.
  std::vector<ValidationRow> identities() const {
    std::vector<ValidationRow> rows;
    const auto add = [&](const char* key, double value, const char* formula) {
      if (!expect().contains(key) || !expect()[key].is_number()) return;
      rows.push_back(row(key));
      rows.back().why = formula;
      if (std::isfinite(value) && value > 0) {
        rows.back().predicted = value;
      } else {
        rows.back().why = cat("configuration incomplete: ", formula, " needs a number that is unknown");
      }
    };
    const json& in = input();
    add("one_copy_fp32_gib",
        number_or_none(in, "seq") * number_or_none(in, "vocab") * number_or_none(in, "bytes") / kGiB, "s V bytes");
    if (in.contains("precision") && in["precision"].is_string()) {
      if (const auto bytes = sum_of_last_numbers(in["precision"])) {
        add("bytes_per_parameter", *bytes, "the sum of the states");
      }
    }
    if (number_or_none(in, "nodes") > 0) {
      const double bytes = 2 * number_or_none(in, "tokens") * number_or_none(in, "hidden") *
                           number_or_none(in, "layers") / number_or_none(in, "nodes");
      add("bytes_per_node", bytes, "2 s h L over the nodes: each layer's input in 16 bits");
      add("gib", bytes / kGiB, "2 s h L over the nodes: each layer's input in 16 bits");
    }
    if (rows.empty()) {
      rows.push_back(row(""));
      rows.back().why = "an identity of a kind that is not known";
    }
    return rows;
  }

  const json& each_;
  const json& models_;
};

}  // namespace

std::vector<ValidationRow> validate_memory(const json& file) {
  const json models = file.contains("models") ? file["models"] : json::object();
  std::vector<ValidationRow> rows;
  for (const json& each : cases_of(file)) {
    for (ValidationRow& row : Case(each, models).rows()) {
      if (row.is_used() && !(row.published > 0)) {
        row.predicted.reset();
        row.why = "what is published is no positive number";
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace octavo
