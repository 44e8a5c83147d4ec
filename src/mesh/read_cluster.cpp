#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/mesh/cluster.h"

namespace octavo {
namespace {

constexpr std::int64_t kMostPerCount = 1'000'000;

void check_size(const Cluster& cluster, const std::string& where) {
  const Accelerator& accelerator = cluster.accelerator;
  const int most = static_cast<int>(accelerator.fabric.ranks.value);
  if (cluster.gpus_per_node > most) {
    throw UsageError(cat(where, ": ", accelerator.fabric.link, " of ", accelerator.name, " joins at most ", most,
                         " in a node, not ", cluster.gpus_per_node, "; write more nodes, as in ", accelerator.name, "x",
                         most, "x2"));
  }
  if (static_cast<std::int64_t>(cluster.gpus_per_node) * cluster.num_nodes > kMostPerCount) {
    throw UsageError(cat(where, ": ", cluster.gpus_per_node, " times ", cluster.num_nodes, " is more than ",
                         with_commas(kMostPerCount), " accelerators; lower one"));
  }
}

int parse_count(const std::string& word, const std::string& what, const std::string& where) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  if (error == std::errc::result_out_of_range || (is_number && count > kMostPerCount)) {
    throw UsageError(
        cat(where, ": ", in_quotes(word, 30), " ", what, " are too many; at most ", with_commas(kMostPerCount)));
  }
  if (!is_number || count < 1) {
    throw UsageError(cat(where, ": the number of ", what, " is ", in_quotes(word, 30),
                         "; write a whole number from 1, as in H100x8x16"));
  }
  return static_cast<int>(count);
}

/// Letters of the longest name of the catalogue that `text` begins with, followed by an x; 0 if there is none.
std::size_t name_length(const std::string& text) {
  std::size_t longest = 0;
  const auto consider = [&](const std::string& name) {
    const bool fits = text.size() > name.size() && text[name.size()] == 'x' &&
                      std::equal(name.begin(), name.end(), text.begin(),
                                 [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    if (fits) longest = std::max(longest, name.size());
  };
  for (const Accelerator& accelerator : hardware_catalogue()) {
    consider(accelerator.name);
    for (const std::string& alias : accelerator.aliases) consider(alias);
  }
  return longest;
}

Cluster parse_cluster_text(const std::string& text) {
  const std::string where = cat("[mesh] cluster ", in_quotes(text, 60));
  const std::size_t length = name_length(text);
  if (length == 0) {
    // The text up to an x with a count behind it is what was meant as a name.
    std::size_t end = 0;
    while (end < text.size() && !(end > 0 && text[end] == 'x' && end + 1 < text.size() &&
                                  (std::isdigit(static_cast<unsigned char>(text[end + 1])) || text[end + 1] == '-'))) {
      ++end;
    }
    const Accelerator& accelerator = find_accelerator(text.substr(0, end));
    throw UsageError(cat(where, " says no number of accelerators per node; write ", accelerator.name, "x",
                         accelerator.fabric.ranks.value, ", or with nodes ", accelerator.name, "x",
                         accelerator.fabric.ranks.value, "x16"));
  }
  const std::vector<std::string> counts = split(std::string_view(text).substr(length + 1), 'x');
  if (counts.size() > 2) {
    throw UsageError(
        cat(where, " has ", counts.size(), " counts; write accelerators per node and nodes, as in H100x8x16"));
  }
  Cluster cluster;
  cluster.accelerator = find_accelerator(text.substr(0, length));
  cluster.gpus_per_node = parse_count(counts[0], "accelerators per node", where);
  if (counts.size() > 1) cluster.num_nodes = parse_count(counts[1], "nodes", where);
  check_size(cluster, where);
  return cluster;
}

int json_count(JsonObject& object, const std::string& key, std::int64_t value) {
  if (value < 1 || value > kMostPerCount) {
    object.fail(key, cat("is ", value, "; a whole number from 1 to ", with_commas(kMostPerCount), " belongs here"));
  }
  return static_cast<int>(value);
}

/// A constant of another kind than the catalogue's has the wrong unit, or is a slip.
void check_plausible(JsonObject& object, const HardwareField& field, const std::optional<HardwareConstant>& known,
                     double value) {
  constexpr double kMostTimes = 1e4, kMostCount = 1e5;
  const bool counts = field.unit == "accelerators" || field.unit == "NICs";
  if (counts && (value != std::floor(value) || value > kMostCount)) {
    object.fail(field.name, cat("is ", value, "; a whole number from 1 to ", kMostCount, " belongs here"));
  }
  if (!counts && known && (value > known->value * kMostTimes || value < known->value / kMostTimes)) {
    object.fail(field.name, cat("is ", value, " ", field.unit, "; the catalogue has ", known->value,
                                ", and a value within ", kMostTimes, " times of it belongs here"));
  }
}

void override_constants(Accelerator& accelerator, const nlohmann::json& values, const std::string& where,
                        const std::string& source, const std::string& date) {
  JsonObject object(values, where);
  for (const HardwareField& field : hardware_fields()) {
    const auto place = values.find(field.name);
    if (place != values.end() && place->is_null()) {
      object.ignore(field.name);
      if (!field.is_optional) object.fail(field.name, "is null; every device has one");
      field.set(accelerator, std::nullopt);
      continue;
    }
    const std::optional<double> value = object.find_number(field.name);
    if (!value) continue;
    if (!(*value > 0) || !std::isfinite(*value) || (field.is_share() && *value > 1)) {
      object.fail(field.name,
                  cat("is ", *value, "; ", field.is_share() ? "a share from above 0 to 1" : "a number above 0",
                      " belongs here", field.is_share() ? "" : ", in " + field.unit));
    }
    check_plausible(object, field, field.get(accelerator), *value);
    field.set(accelerator, HardwareConstant{*value, source, date});
  }
  object.finish();
  // What was measured on the catalogue's device says nothing of one with another peak.
  if (values.contains("bf16_flops") && !values.contains("measured_bf16_flops")) accelerator.measured_bf16_flops.reset();
  if (values.contains("fp8_flops") && !values.contains("measured_fp8_flops")) accelerator.measured_fp8_flops.reset();
  const FabricTiming& timing = accelerator.timing;
  if (timing.switch_latency.has_value() != timing.switch_share.has_value()) {
    object.fail(timing.switch_share ? "switch_latency" : "switch_share",
                "is missing; a switch that sums has both switch_latency and switch_share");
  }
}

}  // namespace

Cluster parse_cluster_json(const std::string& json_text, const std::string& origin) {
  const std::string where = cat("[mesh] ", origin);
  const nlohmann::json json = parse_json(json_text, where);
  JsonObject object(json, where);
  Cluster cluster;
  cluster.accelerator = find_accelerator(object.text("accelerator"));
  if (const auto name = object.find_text("name")) cluster.accelerator.full_name = printable(*name);
  if (const auto link = object.find_text("link")) cluster.accelerator.fabric.link = printable(*link);
  cluster.gpus_per_node = json_count(object, "gpus_per_node", object.integer("gpus_per_node"));
  cluster.num_nodes = json_count(object, "nodes", object.find_integer("nodes").value_or(1));
  if (const auto topology = object.find_text("topology")) {
    if (*topology != "switch" && *topology != "full mesh") {
      object.fail("topology", cat("is ", in_quotes(*topology, 40), "; it is \"switch\" or \"full mesh\""));
    }
    cluster.accelerator.fabric.topology = *topology == "switch" ? FabricTopology::Switch : FabricTopology::FullMesh;
  }
  const std::string source = printable(object.find_text("source").value_or(origin));
  const std::string date = printable(object.find_text("date").value_or("-"));
  if (const nlohmann::json* constants = object.find("constants")) {
    override_constants(cluster.accelerator, *constants, where + " constants", source, date);
  }
  for (const HardwareField& field : hardware_fields()) {
    if (json.contains(field.name)) object.fail(field.name, "is a constant; it belongs under \"constants\"");
  }
  object.finish();
  check_size(cluster, where);
  return cluster;
}

Cluster read_cluster(const std::string& text) {
  if (text.ends_with(".json")) return parse_cluster_json(read_text_file(text, "[mesh] " + text, 1'000'000), text);
  std::error_code error;
  if (std::filesystem::is_regular_file(text, error)) {
    throw UsageError(cat("[mesh] cluster ", in_quotes(text, 60), " is a file; its name must end in .json"));
  }
  return parse_cluster_text(text);
}

}  // namespace octavo
