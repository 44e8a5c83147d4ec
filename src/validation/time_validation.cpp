#include "octavo/validation/time_validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/pipeline_schedule.h"
#include "octavo/plan/step_time.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"
#include "validation/golden_case.h"
#include "validation/measured_run.h"
#include "validation/ranking.h"

namespace octavo {
namespace {

using nlohmann::json;

struct Limit {
  const char* source;
  double mean;
};
constexpr Limit kLimits[] = {{"dgxc", 0.06}, {"simumax", 0.08}, {"llm-foundry", 0.15}};

std::string first_source(const json& item) {
  if (!item.contains("source")) return "";
  const json& source = item["source"];
  if (source.is_string()) return source.get<std::string>();
  return source.is_array() && !source.empty() && source[0].is_string() ? source[0].get<std::string>() : "";
}

/// A row that the model prices, and its parts for baseline and order.
struct Used {
  std::size_t row;
  MeasuredRun run;
  Seconds published, predicted;
  std::string inputs;  // equal for rows whose inputs are
};

double tokens_per_rank(const MeasuredRun& run, Seconds seconds) {
  return static_cast<double>(run.job.batch) * static_cast<double>(run.job.sequence_length) / seconds /
         run.cluster.world_size();
}

/// Seconds at an efficiency of 1.
double baseline_seconds(const MeasuredRun& run) {
  const std::vector<std::int64_t> lengths(1, run.job.sequence_length);
  const double flops = training_flops(run.model, lengths) * static_cast<double>(run.job.batch);
  const Layout& layout = run.plan.layout;
  const double stages = layout.mesh.size(Axis::Pipeline);
  const double readers = layout.mesh.size(Axis::Data);
  const double rounds =
      std::max(1.0, static_cast<double>(run.job.batch) / readers / static_cast<double>(run.plan.micro_batch));
  const double bubble = (stages - 1) / (rounds * layout.virtual_stages);
  return flops * (1 + bubble) / (run.cluster.accelerator.bf16_flops->value * run.cluster.world_size());
}

/// All of a run but its batch and its data ranks.
std::string configuration(const MeasuredRun& run) {
  return cat(num_parameters(run.model), " ", run.model.layers.size(), " ", run.job.sequence_length, " ",
             with_degree(run.plan.layout, Axis::Data, 1).to_string(), " ", run.plan.micro_batch, " ",
             run.plan.stash.to_string());
}

class Validation {
 public:
  explicit Validation(const json& file)
      : cases_(cases_of(file)), file_(file), models_(file.contains("models") ? file["models"] : json::object()) {}

  TimeValidation run() {
    for (const json& item : cases_) {
      const std::string kind = text_or_none(item, "kind");
      if (kind == "measurement") add_row(item);
    }
    add_baseline();
    add_sources();
    add_rules();
    add_groups();
    add_noise();
    for (const json& item : cases_) {
      if (text_or_none(item, "kind") == "ranking") out_.rankings.push_back(rank(item, cases_, models_));
    }
    return std::move(out_);
  }

 private:
  void add_row(const json& item) {
    ValidationRow row;
    row.id = text_or_none(item, "id");
    row.group = text_or_none(item, "group");
    row.source = first_source(item);
    row.tolerance = number_or_none(item, "tolerance_rel");
    const json expect = item.contains("expect") ? item["expect"] : json::object();
    const json& input = item.contains("input") && item["input"].is_object() ? item["input"] : file_;
    row.quantity = number_or_none(expect, "step_s") > 0 ? "step_s" : "tokens_per_s_per_gpu";
    row.published = number_or_none(expect, row.quantity.c_str());
    if (row.published <= 0) {
      row.why = "no step time and no throughput is published";
    } else if (item.contains("complete_config") && item["complete_config"] == false) {
      row.why = "configuration incomplete, as the file says";
    } else {
      price(row, input, text_or_none(item, "note"));
    }
    out_.rows.push_back(std::move(row));
  }

  void price(ValidationRow& row, const json& input, const std::string& note) {
    std::variant<MeasuredRun, std::string> run = measured_run(input, models_, note);
    if (const auto* why = std::get_if<std::string>(&run)) {
      row.why = *why;
      return;
    }
    Used used{out_.rows.size(), std::get<MeasuredRun>(std::move(run)), 0, 0, ""};
    FoundRules found;
    try {
      found = find_time_rules(used.run.software, used.run.cluster.accelerator.name);
      used.predicted = TimeModel(used.run.model, used.run.job, used.run.cluster, found.rules).step(used.run.plan).total;
    } catch (const UsageError& error) {
      row.why = error.what();
      return;
    }
    const bool is_time = row.quantity == "step_s";
    used.published = is_time ? row.published : tokens_per_rank(used.run, 1) / row.published;
    row.predicted = is_time ? used.predicted : tokens_per_rank(used.run, used.predicted);
    row.why = found.note.empty() ? cat(found.rules.software, " on ", found.rules.accelerator) : found.note;
    json same = input;
    for (const char* key : {"framework", "task"}) same.erase(key);
    used.inputs = same.dump() + used.run.software;
    used_.push_back(std::move(used));
  }

  /// Efficiency per accelerator: the median of what the rows reached.
  void add_baseline() {
    std::map<std::string, std::vector<double>> reached;
    for (const Used& used : used_)
      reached[used.run.cluster.accelerator.name].push_back(baseline_seconds(used.run) / used.published);
    for (auto& [name, list] : reached) std::sort(list.begin(), list.end());
    out_.baseline.assign(out_.rows.size(), 0);
    for (const Used& used : used_) {
      const std::vector<double>& list = reached[used.run.cluster.accelerator.name];
      out_.baseline[used.row] = baseline_seconds(used.run) / list[list.size() / 2] / used.published - 1;
    }
  }

  void add_sources() {
    for (const Used& used : used_) {
      const std::string& name = out_.rows[used.row].source;
      auto found = std::find_if(out_.sources.begin(), out_.sources.end(),
                                [&](const SourceError& source) { return source.source == name; });
      if (found == out_.sources.end()) {
        found = out_.sources.insert(found, SourceError{.source = name});
        for (const Limit& limit : kLimits) {
          if (name.starts_with(limit.source)) found->limit = limit.mean;
        }
      }
      const double error = std::abs(used.predicted / used.published - 1), base = std::abs(out_.baseline[used.row]);
      ++found->rows;
      found->mean += error;
      found->most = std::max(found->most, error);
      found->baseline_mean += base;
      found->baseline_most = std::max(found->baseline_most, base);
    }
    for (SourceError& source : out_.sources) {
      source.mean /= source.rows;
      source.baseline_mean /= source.rows;
    }
  }

  void add_rules() {
    for (const TimeRules& rules : time_rules_table()) {
      RulesError error{.software = rules.software, .accelerator = rules.accelerator, .axes = {}};
      std::set<std::string> configurations;
      std::array<bool, kAllAxes.size()> has{};
      for (const Used& used : used_) {
        if (used.run.software != rules.software || used.run.cluster.accelerator.name != rules.accelerator) continue;
        const double apart = std::abs(used.predicted / used.published - 1);
        ++error.rows;
        error.mean += apart;
        error.most = std::max(error.most, apart);
        for (const Axis axis : kAllAxes)
          has[static_cast<std::size_t>(axis)] |= used.run.plan.layout.mesh.size(axis) > 1;
        configurations.insert(configuration(used.run));
      }
      if (error.rows == 0) continue;
      error.mean /= error.rows;
      error.configurations = static_cast<int>(configurations.size());
      for (const Axis axis : kAllAxes) {
        if (has[static_cast<std::size_t>(axis)]) error.axes.push_back(axis);
      }
      out_.rules.push_back(std::move(error));
    }
  }

  void add_groups() {
    std::map<std::string, std::vector<const Used*>> groups;
    for (const Used& used : used_) groups[out_.rows[used.row].group].push_back(&used);
    for (const auto& [name, members] : groups) {
      PairOrder order{name};
      for (const Used* a : members) {
        for (const Used* b : members) {
          if (tokens_per_rank(a->run, a->published) <= 1.1 * tokens_per_rank(b->run, b->published)) continue;
          ++order.pairs;
          const double first = tokens_per_rank(a->run, a->predicted), second = tokens_per_rank(b->run, b->predicted);
          if (first > second) {
            ++order.right;
          } else {
            order.wrong.push_back(cat(out_.rows[a->row].id, " before ", out_.rows[b->row].id, ": ",
                                      fixed(tokens_per_rank(a->run, a->published), 0), " and ",
                                      fixed(tokens_per_rank(b->run, b->published), 0), " tokens/s, predicted ",
                                      fixed(first, 0), " and ", fixed(second, 0)));
          }
        }
      }
      if (order.pairs > 0) out_.groups.push_back(order);
    }
  }

  void add_noise() {
    std::map<std::pair<std::string, std::string>, std::vector<double>> same;
    for (const Used& used : used_) same[{out_.rows[used.row].source, used.inputs}].push_back(used.published);
    for (const auto& [key, times] : same) {
      if (times.size() < 2) continue;
      auto found = std::find_if(out_.noise.begin(), out_.noise.end(),
                                [&](const NoiseFloor& noise) { return noise.source == key.first; });
      if (found == out_.noise.end()) found = out_.noise.insert(found, NoiseFloor{.source = key.first});
      std::vector<double> sorted = times;
      std::sort(sorted.begin(), sorted.end());
      for (const double time : times) found->mean += std::abs(sorted[sorted.size() / 2] / time - 1);
      found->rows += static_cast<int>(times.size());
    }
    for (NoiseFloor& noise : out_.noise) noise.mean /= noise.rows;
  }

  const json& cases_;
  const json& file_;
  const json models_;
  std::vector<Used> used_;
  TimeValidation out_;
};

}  // namespace

TimeValidation validate_time(const json& file) {
  return Validation(file).run();
}

}  // namespace octavo
