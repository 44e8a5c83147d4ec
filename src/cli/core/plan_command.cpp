// octavo plan: which layout is best for a model, a batch and a cluster, and what it costs before it runs.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/core/commands.h"
#include "cli/core/plan_report.h"
#include "cli/core/validation.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

struct PlanArguments {
  ModelOption model;
  std::string cluster, sequence, batch, memory_limit, software = "megatron-core", dtype = "bf16", layout, stash,
                                                      lengths, nodes, axes, zero, schedules, set, emit, validate;
  std::optional<std::int64_t> micro_batch;
  std::int64_t top = 10;
  bool runnable = false, constants = false, json_output = false;
};

TrainingJob job_of(const PlanArguments& arguments) {
  TrainingJob job;
  job.sequence_length = parse_tokens(arguments.sequence, "--sequence");
  const std::int64_t tokens = parse_tokens(arguments.batch, "--global-batch");
  if (tokens % job.sequence_length != 0) {
    const std::int64_t below = tokens / job.sequence_length * job.sequence_length;
    throw UsageError(cat("[cli] --global-batch ", with_commas(tokens), " tokens is no whole number of sequences of ",
                         with_commas(job.sequence_length), "; the nearest are ",
                         below > 0 ? with_commas(below) + " and " : "", with_commas(below + job.sequence_length)));
  }
  job.batch = tokens / job.sequence_length;
  job.compute = parse_element_type(arguments.dtype);
  return job;
}

Bytes limit_of(const PlanArguments& arguments, const Cluster& cluster) {
  if (arguments.memory_limit.empty()) return default_memory_limit(cluster);
  const Bytes limit = parse_bytes(arguments.memory_limit, "--memory-limit");
  const auto all = static_cast<Bytes>(cluster.accelerator.memory_bytes.value);
  if (limit < 1 || limit > all) {
    throw UsageError(cat("[cli] --memory-limit ", arguments.memory_limit, ": use 1 B to the ", format_bytes(all),
                         " that the accelerator has"));
  }
  return limit;
}

StepPlan asked_plan(const PlanArguments& arguments, const PlanRequest& request) {
  StepPlan plan;
  plan.layout = parse_layout(arguments.layout);
  const int world = request.cluster.world_size(), ranks = plan.layout.world_size();
  if (ranks > world) {
    throw UsageError(cat("[cli] --layout \"", arguments.layout, "\" has ", ranks, " ranks, and ",
                         request.cluster.to_string(), " has ", world, " accelerators; lower a degree or add nodes"));
  }
  plan.stash = parse_stash_policy(arguments.stash.empty() ? "keep" : arguments.stash);
  plan.micro_batch = arguments.micro_batch.value_or(1);
  return plan;
}

/// Words of a list that stands for values of a kind.
template <class Value>
std::vector<Value> parse_words(const std::string& text, const std::string& option, const char* what,
                               std::span<const std::pair<std::string_view, Value>> known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.emplace_back(name);
  std::vector<Value> values;
  for (const std::string& word : split(text, ',')) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      const std::string close = nearest(word, names);
      throw UsageError(cat("[cli] ", option, ": ", in_quotes(word, 30), " is no ", what,
                           close.empty() ? "" : cat("; the nearest is ", close), "; there are ", join(names, ", ")));
    }
    values.push_back(known[static_cast<std::size_t>(found - names.begin())].second);
  }
  return values;
}

std::array<bool, kAllAxes.size()> axes_of(const std::string& text) {
  std::vector<std::pair<std::string_view, Axis>> known;
  for (const Axis axis : kAllAxes) known.emplace_back(axis_name(axis), axis);
  std::array<bool, kAllAxes.size()> allowed{};
  for (const Axis axis : parse_words<Axis>(text, "--axes", "axis", known))
    allowed[static_cast<std::size_t>(axis)] = true;
  return allowed;
}

/// With --layout, micro-batch and stash are that layout's alone.
SearchSpace space_of(const PlanArguments& arguments) {
  SearchSpace space;
  space.runnable = arguments.runnable || (!arguments.emit.empty() && arguments.layout.empty());
  if (!arguments.axes.empty()) space.axes = axes_of(arguments.axes);
  if (!arguments.zero.empty()) {
    space.zero = parse_words<ZeroStage>(arguments.zero, "--zero", "ZeRO stage", kZeroWords);
  }
  if (!arguments.schedules.empty()) {
    space.schedules = parse_words<PipelineForm>(arguments.schedules, "--schedules", "schedule", kScheduleWords);
  }
  if (!arguments.layout.empty()) return space;
  space.micro_batch = arguments.micro_batch;
  if (!arguments.stash.empty()) space.stash = parse_stash_policy(arguments.stash);
  return space;
}

void check_counts(const PlanArguments& arguments) {
  constexpr std::int64_t kMostRows = 1000, kMostSequences = 1 << 20;
  if (arguments.top < 1 || arguments.top > kMostRows) {
    throw UsageError(cat("[cli] --top ", arguments.top, ": use 1 to ", kMostRows));
  }
  if (arguments.micro_batch && (*arguments.micro_batch < 1 || *arguments.micro_batch > kMostSequences)) {
    throw UsageError(cat("[cli] --micro-batch ", *arguments.micro_batch, ": use 1 to ", kMostSequences, " sequences"));
  }
  for (const auto& [value, option] : {std::pair{&arguments.model.path, "MODEL"},
                                      {&arguments.cluster, "--cluster"},
                                      {&arguments.sequence, "--sequence"},
                                      {&arguments.batch, "--global-batch"}}) {
    if (value->empty()) throw UsageError(cat("[cli] plan needs ", option, "; see octavo plan --help"));
  }
}

/// Lengths that the batch is a whole number of sequences of.
std::vector<std::int64_t> lengths_of(const PlanArguments& arguments, const TrainingJob& job) {
  if (arguments.lengths.empty()) return {};
  const std::int64_t tokens = job.sequence_length * job.batch;
  std::vector<std::int64_t> lengths = parse_lengths(arguments.lengths, "--lengths");
  for (const std::int64_t length : lengths) {
    if (tokens % length != 0) {
      throw UsageError(cat("[cli] --lengths: the batch of ", with_commas(tokens),
                           " tokens is no whole number of sequences of ", with_commas(length),
                           "; use lengths that divide it"));
    }
  }
  return lengths;
}

/// A search of more takes hours.
constexpr int kMostAccelerators = 1 << 17;

/// No more accelerators than can be searched.
std::vector<int> nodes_of(const PlanArguments& arguments, const Cluster& cluster) {
  if (arguments.nodes.empty()) return {};
  return parse_counts(arguments.nodes, "--nodes", kMostAccelerators / cluster.gpus_per_node);
}

void search_and_advise(const PlanArguments& arguments, PlanReport& report) {
  const std::vector<std::int64_t> lengths = lengths_of(arguments, report.request.job);
  const std::vector<int> nodes = nodes_of(arguments, report.request.cluster);
  report.found = search(report.request, report.space);
  if (!report.found.best.empty())
    report.detail = PlanDetail{report.found.best.front(), report.request.memory_limit, {}};
  report.reach = strategy_reach(report.request, report.space);
  report.sensitivity = sensitivities(report.request, report.found);
  report.confidence = confidence(report.request, report.found);
  report.winners = winners_by_length(report.request, report.space, lengths);
  report.sizes = winners_by_nodes(report.request, report.space, nodes);
}

int run_plan(const PlanArguments& arguments) {
  if (!arguments.validate.empty()) return run_validation(arguments.validate, arguments.json_output);
  check_counts(arguments);
  PlanReport report;
  PlanRequest& request = report.request;
  request.model = read_model_spec(arguments.model.path);
  request.job = job_of(arguments);
  if (arguments.runnable || !arguments.emit.empty()) check_trainable(request.model);
  request.cluster = read_cluster(arguments.cluster);
  if (request.cluster.world_size() > kMostAccelerators) {
    throw UsageError(cat("[cli] --cluster ", request.cluster.to_string(), " has ",
                         with_commas(request.cluster.world_size()), " accelerators; a plan goes to ",
                         with_commas(kMostAccelerators)));
  }
  const FoundRules rules = find_time_rules(arguments.software, request.cluster.accelerator);
  request.rules = rules.rules;
  if (!arguments.set.empty()) set_time_constants(request.rules, arguments.set);
  report.rules_note = rules.note;
  request.memory_limit = limit_of(arguments, request.cluster);
  if (arguments.constants) {
    if (arguments.json_output) {
      std::cout << constants_json(request).dump(2) << "\n";
    } else {
      std::cout << constants_text(request);
    }
    return 0;
  }
  report.is_asked = !arguments.layout.empty();
  report.top = static_cast<std::size_t>(arguments.top);
  report.space = space_of(arguments);
  if (report.is_asked) {
    const StepPlan plan = asked_plan(arguments, request);
    report.detail =
        PlanDetail{price(request, plan), request.memory_limit, smallest_changes(request, plan, report.space)};
    report.found = search(request, report.space);
  } else {
    search_and_advise(arguments, report);
  }
  if (arguments.json_output) {
    std::cout << plan_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cout << plan_text(report);
  }
  if (!report.detail)
    throw CheckFailed(cat("[cli] no layout", report.space.runnable ? " that octavo train runs today" : "",
                          " fits; see which rules they broke, or ask --layout what would help"));
  if (!arguments.emit.empty()) emit_plan(report, arguments.model.path, arguments.emit);
  if (report.is_asked && !report.detail->fits()) {
    throw CheckFailed(cat("[cli] the layout needs ", format_bytes(report.detail->priced.memory.total()),
                          " on a rank, allowed are ", format_bytes(request.memory_limit)));
  }
  return 0;
}

/// What would be ignored beside `option` is refused.
void refuse_others(CLI::App& command, CLI::Option& option, const std::vector<std::string>& allowed) {
  for (CLI::Option* other : command.get_options()) {
    const bool is_allowed =
        std::any_of(allowed.begin(), allowed.end(), [&](const std::string& name) { return other->check_name(name); });
    if (other != &option && !is_allowed) option.excludes(other);
  }
}

/// Beside a checkout, else in it.
std::string default_golden_folder() {
  constexpr const char* kBeside = "../shared/golden";
  std::error_code error;
  return std::filesystem::is_directory(kBeside, error) ? kBeside : "tests/data/golden";
}

}  // namespace

void add_plan_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command =
      program.add_subcommand("plan", "The best layouts of a model on a cluster, and what each costs before it runs");
  PlanArguments& a = *arguments;
  add_model_option(*command, a.model, false);
  command->add_option("--cluster", a.cluster, "H100x8x16 (16 nodes of 8), or a JSON file (docs/plan.md)");
  command->add_option("--sequence,--seq-len", a.sequence, "Tokens of a sequence: 131072 or 128K");
  command->add_option("--global-batch", a.batch, "Tokens of a step over all ranks: 4194304 or 4M (x 1,048,576)");
  command->add_option("--memory-limit", a.memory_limit, "Of a rank: 72GB; default: 92 % of the accelerator's");
  auto* layout = command->add_option(
      "--layout", a.layout, "Price this one in full, and the best beside it: \"data=16:zero1 tensor=8:scatter\"");
  command->add_option("--micro-batch", a.micro_batch,
                      "Sequences at once; default: all that divide, or 1 with --layout");
  command->add_option("--stash", a.stash,
                      "keep, recompute, or some of attention,qkv,gate_up; default: all, or keep with --layout");
  command->add_option("--top", a.top, "Layouts to list")->capture_default_str()->excludes(layout);
  command->add_flag("--runnable", a.runnable,
                    "Search only what this engine runs today: data, tensor, fold; ZeRO 0 and 1");
  command->add_option("--axes", a.axes,
                      "Search these axes alone, as data,tensor,pipeline: of pipeline, data, expert, sequence, fold, "
                      "tensor");
  command->add_option("--lengths", a.lengths, "Also the winner at these lengths: 4096..262144 (doubling), or 8K,32K")
      ->excludes(layout);
  command->add_option("--nodes", a.nodes, "Also the winner on so many nodes: 1..16 (doubling), or 2,3,4")
      ->excludes(layout);
  command->add_option("--zero", a.zero, "Search these ZeRO stages alone: of zero0, zero1, zero3");
  command->add_option("--schedules", a.schedules, "Search these alone: of 1f1b, gpipe, zb, interleaved");
  command->add_option("--set", a.set, "Other time constants: tensor_exposed=0.2,step_latency=0.01 (--constants)");
  command->add_option("--software", a.software, cat("Whose time constants: ", join(known_software(), ", ")))
      ->capture_default_str();
  command->add_option("--dtype", a.dtype, "bf16 or fp32")->capture_default_str();
  command->add_option("--emit", a.emit,
                      "Write the plan as a file for octavo train --config; the search then is that of --runnable");
  auto* constants =
      command->add_flag("--constants", a.constants, "Print every constant: value, unit, direction, source, date");
  auto* validate =
      command
          ->add_option("--validate", a.validate,
                       "Instead: published figures of a folder beside predicted ones; default: a checkout's own")
          ->expected(0, 1)
          ->default_str(default_golden_folder());
  add_json_option(*command, a.json_output);
  add_config_option(*command);
  refuse_others(*command, *validate, {"--json", "--config", "--help"});
  refuse_others(*command, *constants,
                {"--json", "--config", "--help", "--model", "--cluster", "--sequence", "--global-batch", "--software",
                 "--set", "--dtype", "--memory-limit"});
  refuse_empty_values(*command);
  command->footer(
      "Examples:\n"
      "  octavo plan config.json --cluster H100x8x16 --sequence 8192 --global-batch 4M\n"
      "  octavo plan config.json --cluster H100x8 --sequence 32K --global-batch 512K --emit run.toml\n"
      "  octavo plan config.json --cluster H100x8x16 --sequence 8K --global-batch 4M --axes data,tensor,pipeline "
      "--nodes 4..32\n"
      "  octavo plan config.json --cluster H100x8 --sequence 8K --global-batch 256K --layout \"fold=8\" --stash "
      "recompute\n"
      "A layout is axis=degree{:option}, outermost first: data[:zero1|:zero3], tensor[:scatter][:replicate|:pad],\n"
      "sequence[:gather|:ring|:ulysses], fold[:weights|:activations], pipeline[:1f1b|:gpipe|:zb|:interleaved-V], "
      "expert.");
  command->callback([arguments, &run] { run = [arguments] { return run_plan(*arguments); }; });
}

}  // namespace octavo::cli
