// octavo compare: one layer and one training step under each way to use several ranks, side by side.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/core/commands.h"
#include "cli/core/compare_report.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

struct CompareArguments {
  ModelOption model;
  std::string sequence, cluster = "H100x8", stash = "recompute", software = "megatron-core", set, plot;
  std::int64_t degree = 8, batch = 1;
  bool json_output = false;
};

std::vector<std::int64_t> lengths_of(const CompareArguments& arguments) {
  constexpr std::size_t kMostLengths = 16;
  if (arguments.sequence.empty()) throw UsageError("[cli] compare needs --sequence; see octavo compare --help");
  std::vector<std::int64_t> lengths = parse_lengths(arguments.sequence, "--sequence");
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  if (lengths.size() > kMostLengths) {
    throw UsageError(cat("[cli] --sequence ", in_quotes(arguments.sequence), " is ", lengths.size(),
                         " lengths; name at most ", kMostLengths));
  }
  return lengths;
}

void check_counts(const CompareArguments& arguments, const Cluster& cluster) {
  constexpr std::int64_t kMostSequences = 1 << 20;
  if (arguments.batch < 1 || arguments.batch > kMostSequences) {
    throw UsageError(cat("[cli] --batch ", arguments.batch, ": use 1 to ", kMostSequences, " sequences"));
  }
  if (arguments.degree < 2) throw UsageError(cat("[cli] --degree ", arguments.degree, ": use 2 or more ranks"));
  if (arguments.degree > cluster.world_size()) {
    throw UsageError(cat("[cli] --degree ", arguments.degree, ": ", cluster.to_string(), " has ", cluster.world_size(),
                         " accelerators; lower it, or name a larger --cluster"));
  }
}

int run_compare(const CompareArguments& arguments) {
  CompareReport report;
  const std::vector<std::int64_t> lengths = lengths_of(arguments);
  PlanRequest& request = report.request;
  request.cluster = read_cluster(arguments.cluster);
  check_counts(arguments, request.cluster);
  request.model = read_model_spec(arguments.model.path);
  request.job = {lengths.back(), arguments.batch, ElementType::BFloat16};
  const FoundRules rules = find_time_rules(arguments.software, request.cluster.accelerator);
  request.rules = rules.rules;
  if (!arguments.set.empty()) set_time_constants(request.rules, arguments.set);
  request.memory_limit = default_memory_limit(request.cluster);
  report.rules_note = rules.note;
  report.degree = static_cast<int>(arguments.degree);
  report.stash = parse_stash_policy(arguments.stash);
  report.layer = strategy_layer(request.model);
  report.layouts = compared_layouts(request.model, report.degree);
  for (const std::int64_t length : lengths) {
    PlanRequest at_length = request;
    at_length.job.sequence_length = length;
    LengthSteps& row = report.lengths.emplace_back(LengthSteps{length, {}, {}});
    for (const ComparedLayout& each : report.layouts) {
      row.steps.push_back(strategy_step(at_length, each.layout, report.stash));
    }
    row.front = time_memory_front(row.steps, request.memory_limit);
  }
  report.confidence = confidence(request, parse_layout(cat("fold=", report.degree)));
  if (!arguments.plot.empty()) write_whole_file(arguments.plot, compare_plot(report), "--plot");
  if (arguments.json_output) {
    std::cout << compare_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cout << compare_text(report);
  }
  return 0;
}

}  // namespace

std::vector<StrategyRanks> CompareReport::strategies() const {
  std::vector<StrategyRanks> found;
  for (const ComparedLayout& each : layouts) {
    const bool is_other_form = each.ranks.strategy == Strategy::Fold && each.layout.fold_form == FoldForm::Activations;
    const bool is_with_zero = each.ranks.strategy != Strategy::Data && each.layout.zero != ZeroStage::None;
    if (!is_other_form && !is_with_zero) found.push_back(each.ranks);
  }
  return found;
}

const LengthSteps* CompareReport::longest_that_fits() const {
  for (auto row = lengths.rbegin(); row != lengths.rend(); ++row) {
    if (!row->front.empty()) return &*row;
  }
  return nullptr;
}

std::string strategy_label(const StrategyRanks& ranks) {
  if (ranks.strategy == Strategy::TensorSequence) return cat("tensor=", ranks.tensor, " sequence=", ranks.sequence);
  return std::string(strategy_title(ranks.strategy));
}

bool has_share(const CompareReport& report, const StrategyRanks& ranks) {
  return ranks.strategy != Strategy::Data || report.request.job.batch % ranks.all() == 0;
}

void add_compare_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = program.add_subcommand(
      "compare", "Data, tensor, sequence, tensor + sequence and folding side by side, for one layer and one step");
  CompareArguments& a = *arguments;
  add_model_option(*command, a.model);
  command->add_option("--sequence,--seq-len", a.sequence, "Tokens of a sequence: 4096..262144 (doubling), or 8K,32K");
  command->add_option("--degree", a.degree, "Ranks of each strategy")->capture_default_str();
  command->add_option("--cluster", a.cluster, "H100x8x16 (16 nodes of 8), or a JSON file (docs/plan.md)")
      ->capture_default_str();
  command->add_option("--batch", a.batch, "Sequences of a step over all ranks, taken at once")->capture_default_str();
  command->add_option("--stash", a.stash, "What forward keeps: keep, recompute, or values by name")
      ->capture_default_str();
  command->add_option("--software", a.software, cat("Whose time constants: ", join(known_software(), ", ")))
      ->capture_default_str();
  command->add_option("--set", a.set, "Other time constants, as of octavo plan: tensor_exposed=0.2");
  command->add_option("--plot", a.plot, "Write memory by length, and step time by headroom, as an SVG file");
  add_json_option(*command, a.json_output);
  add_config_option(*command);
  refuse_empty_values(*command);
  command->footer(
      "Examples:\n"
      "  octavo compare config.json --sequence 4096..262144\n"
      "  octavo compare config.json --sequence 128K --degree 16 --cluster H100x8x2 --plot compare.svg");
  command->callback([arguments, &run] { run = [arguments] { return run_compare(*arguments); }; });
}

}  // namespace octavo::cli
