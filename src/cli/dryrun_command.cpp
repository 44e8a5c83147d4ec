// octavo dryrun: what a step of any rank of any world costs, from the real step on meta tensors.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/core/table.h"
#include "cli/fold_report.h"
#include "cli/report_json.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/layout/placement.h"
#include "octavo/plan/alike.h"
#include "octavo/plan/traffic.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

struct DryRunArguments {
  ModelOption model;
  std::string layout, dtype = "fp32", stash = "keep", memory_limit, backend = "threads";
  std::optional<int> rank;
  bool all_distinct = false, json_output = false;
  std::optional<std::int64_t> batch, micro_batch;
  std::int64_t sequence_length = 256;
};

/// A rank's step, and what was said about it beforehand.
struct RankReport {
  int rank;
  std::vector<int> alike;  // ranks whose step is the same, itself included
  std::int64_t sequences;
  Flops model_flops;  // that the model asks of this rank
  DryRun run;
  std::vector<LedgerRow> predicted;
  std::vector<std::string> differences;  // of the predicted and the booked traffic
  Seconds took;
};

struct Job {
  explicit Job(const DryRunArguments& a) : model(read_model_spec(a.model.path)), table(model) {
    check_trainable(model);
    options.layout = parse_runnable_layout(a.layout);
    options.compute = parse_element_type(a.dtype);
    options.batch = a.batch.value_or(4 * std::int64_t{options.layout.mesh.size(Axis::Data)});
    options.sequence_length = a.sequence_length;
    check_count("--batch", options.batch);
    check_count("--seq-len", options.sequence_length);
    options.trainer.micro_batch =
        a.micro_batch.value_or(std::max<std::int64_t>(1, sequences_of(options.layout, options.batch, 0).size()));
    check_count("--micro-batch", options.trainer.micro_batch);
    options.trainer.stash = parse_stash_policy(a.stash);
    options.backend = a.backend == "gloo" ? Backend::Gloo : Backend::Threads;
    if (!a.memory_limit.empty()) options.memory_limit = parse_bytes(a.memory_limit, "--memory-limit");
    if (a.rank && *a.rank >= options.layout.world_size()) {
      throw UsageError(cat("[cli] --rank ", *a.rank, ": the layout has ranks 0 to ", options.layout.world_size() - 1));
    }
  }

  static void check_count(const char* option, std::int64_t value) {
    constexpr std::int64_t kMost = std::int64_t{1} << 32;  // so that products of sizes stay far from overflow
    if (value < 1 || value > kMost) throw UsageError(cat("[cli] ", option, " ", value, ": use 1 to ", kMost));
  }

  RankReport run(int rank, const std::vector<int>& alike) const {
    const Layout& layout = options.layout;
    RankReport report{.rank = rank,
                      .alike = alike,
                      .sequences = 0,
                      .model_flops = 0,
                      .run = {},
                      .predicted = {},
                      .differences = {},
                      .took = 0};
    report.sequences = sequences_of(layout, options.batch, layout.mesh.index(rank, Axis::Data)).size();
    const std::vector<std::int64_t> lengths(report.sequences, options.sequence_length);
    report.model_flops =
        training_flops(model, lengths) / (layout.mesh.size(Axis::Tensor) * layout.mesh.size(Axis::Fold));
    const auto begin = std::chrono::steady_clock::now();
    report.run = dry_run(model, options, rank);
    report.took = std::chrono::duration<Seconds>(std::chrono::steady_clock::now() - begin).count();
    report.predicted = predict_step_traffic(table, layout, shape(), rank);
    report.differences = traffic_differences(report.predicted, report.run.ledger);
    return report;
  }

  StepShape shape() const {
    return {.batch = options.batch,
            .sequence_length = options.sequence_length,
            .micro_batch = options.trainer.micro_batch,
            .compute = options.compute,
            .recomputes = options.trainer.stash.kind == StashPolicy::Kind::Recompute,
            .reads_in_place = options.backend == Backend::Threads,
            .shares_memory = options.backend == Backend::Threads};
  }
  /// Of the first micro-batch.
  FoldWork fold_step() const {
    const std::int64_t positions =
        shown_positions(options.layout, options.batch, options.sequence_length, options.trainer.micro_batch);
    return fold_work(shape(), positions, /*training=*/true);
  }

  ModelSpec model;
  ParamTable table;
  DryRunOptions options;
};

std::string memory_text(const DryRun& run) {
  Table table({"memory", "at the peak", "between steps"});
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    table.add({std::string(memory_category_name(static_cast<MemoryCategory>(c))), format_bytes(run.peak.by_category[c]),
               format_bytes(run.state.by_category[c])});
  }
  table.add({"total", format_bytes(run.peak.total), format_bytes(run.state.total)});
  return table.to_string();
}

std::string to_text(const RankReport& report) {
  const ExecutedFlops& flops = report.run.flops;
  std::string text =
      cat("\nrank ", report.rank, ": ", report.sequences, report.sequences == 1 ? " sequence" : " sequences", "; ",
          report.alike.size() == 1 ? "no other rank is like it"
                                   : cat("the same on ranks ", rank_ranges(report.alike), " (",
                                         with_commas(static_cast<std::int64_t>(report.alike.size())), ")"),
          "\n\n", memory_text(report.run), "\nexecutes ", format_flops(flops.total()), ": matmul ",
          format_flops(flops.matmul), ", attention ", format_flops(flops.attention), ", and ",
          format_flops(flops.attention_masked), " for masked pairs; the model asks for ",
          format_flops(report.model_flops), " of this rank\n");
  if (report.run.ledger.empty() && report.predicted.empty()) {
    text += "moves nothing, as predicted\n";
  } else {
    text += cat("\n", ledger_table(report.run.ledger, report.predicted));
    if (report.differences.empty()) text += "every row is as predicted, to the byte\n";
  }
  for (const std::string& difference : report.differences) text += cat("NOT AS PREDICTED  ", difference, "\n");
  return text + cat("took ", format_seconds(report.took), "\n");
}

json to_json(const MemorySnapshot& memory) {
  return {{"total", memory.total}, {"by_category", categories_json(memory)}};
}

json to_json(const RankReport& report) {
  json predicted = json::array(), moved = json::array();
  for (const LedgerRow& row : report.predicted) predicted.push_back(traffic_json(row));
  for (const LedgerRow& row : report.run.ledger) {
    moved.push_back(traffic_json(row));
    moved.back()["copied_bytes"] = row.copied;
  }
  const ExecutedFlops& flops = report.run.flops;
  return {{"rank", report.rank},
          {"alike", report.alike},
          {"sequences", report.sequences},
          {"peak_bytes", to_json(report.run.peak)},
          {"state_bytes", to_json(report.run.state)},
          {"flops",
           {{"matmul", flops.matmul},
            {"attention", flops.attention},
            {"attention_masked", flops.attention_masked},
            {"model", report.model_flops}}},
          {"moved", moved},
          {"predicted", predicted},
          {"as_predicted", report.differences.empty()},
          {"differences", report.differences},
          {"seconds", report.took}};
}

std::vector<RankReport> run_ranks_asked_for(const DryRunArguments& arguments, const Job& job) {
  std::vector<RankReport> reports;
  constexpr int kMostCompared = 1 << 20;
  if (job.options.layout.world_size() > kMostCompared) {
    if (arguments.all_distinct) {
      throw UsageError(cat("[cli] --all-distinct compares every rank with every other; this world of ",
                           with_commas(job.options.layout.world_size()),
                           " is too large for it: choose one with --rank"));
    }
    const int rank = arguments.rank.value_or(0);
    return {job.run(rank, {rank})};
  }
  for (const std::vector<int>& alike : alike_ranks(job.table, job.options.layout, job.options.batch)) {
    const int rank = arguments.rank.value_or(alike.front());
    if (!std::binary_search(alike.begin(), alike.end(), rank)) continue;
    reports.push_back(job.run(rank, alike));
    if (!arguments.all_distinct) break;
  }
  return reports;
}

int run_dryrun(const DryRunArguments& arguments) {
  const Job job(arguments);
  const DryRunOptions& options = job.options;
  const std::vector<RankReport> reports = run_ranks_asked_for(arguments, job);
  bool as_predicted = true;
  for (const RankReport& report : reports) as_predicted &= report.differences.empty();
  if (arguments.json_output) {
    json out = {{"model_type", job.model.model_type},
                {"parameters", num_parameters(job.model)},
                {"layout", options.layout.to_string()},
                {"world_size", options.layout.world_size()},
                {"dtype", element_type_name(options.compute)},
                {"stash", options.trainer.stash.to_string()},
                {"batch", options.batch},
                {"sequence_length", options.sequence_length},
                {"micro_batch", options.trainer.micro_batch},
                {"backend", arguments.backend},
                {"fold", fold_json(job.table, options.layout, job.fold_step(), options.sequence_length)},
                {"as_predicted", as_predicted},
                {"ranks", json::array()}};
    for (const RankReport& report : reports) out["ranks"].push_back(to_json(report));
    std::cout << out.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return as_predicted ? 0 : 1;
  }
  const int world = options.layout.world_size();
  std::cout << job.model.model_type << ", " << with_commas(num_parameters(job.model)) << " parameters; " << world
            << (world == 1 ? " rank" : " ranks") << (world == 1 ? "" : " (" + options.layout.to_string() + ")") << ", "
            << element_type_name(options.compute) << ", a step of " << options.batch << " x " << options.sequence_length
            << " tokens, " << options.trainer.micro_batch
            << (options.trainer.micro_batch == 1 ? " sequence" : " sequences") << " at once, stash "
            << options.trainer.stash.to_string() << "\n";
  for (const std::string& note : fold_notes(job.table, options.layout, job.fold_step(), options.sequence_length))
    std::cout << note << "\n";
  for (const RankReport& report : reports) std::cout << to_text(report);
  std::size_t shown = 0;
  for (const RankReport& report : reports) shown += report.alike.size();
  if (static_cast<int>(shown) < world) {
    std::cout << "(" << world - static_cast<int>(shown)
              << " ranks do something else: --all-distinct shows one of each kind, --rank any)\n";
  }
  return as_predicted ? 0 : 1;
}

}  // namespace

void add_dryrun_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<DryRunArguments>();
  CLI::App* command = program.add_subcommand(
      "dryrun", "Memory, FLOPs and traffic of a training step of any rank of any world, without its machines");
  DryRunArguments& a = *arguments;
  add_model_option(*command, a.model);
  command->add_option("--layout", a.layout, "Axes and degrees, as \"data=64:zero1 tensor=8\"; none: one rank");
  CLI::Option* rank =
      command->add_option("--rank", a.rank, "This rank; default: rank 0, which takes the most sequences and units")
          ->check(CLI::NonNegativeNumber);
  command->add_flag("--all-distinct", a.all_distinct, "One rank of each kind that differs")->excludes(rank);
  command->add_option("--batch", a.batch, "Sequences per step over all ranks; default: 4 per data rank");
  command->add_option("--seq-len", a.sequence_length, "Tokens per sequence")->capture_default_str();
  command->add_option("--micro-batch", a.micro_batch, "Sequences a rank takes at once; default: all of its own");
  command->add_option("--stash", a.stash, "What forward keeps: keep, recompute, or values: attention,qkv,gate_up")
      ->capture_default_str();
  command->add_option("--dtype", a.dtype, "Compute type: fp32, bf16 (with fp32 masters and sums) or fp64")
      ->capture_default_str();
  command
      ->add_option("--backend", a.backend,
                   "What would move tensors: threads (one machine's memory, weights read in place) or gloo")
      ->capture_default_str()
      ->check(CLI::IsMember({"threads", "gloo"}));
  command->add_option("--memory-limit", a.memory_limit,
                      "Bytes of tensors per rank, as 80GB; a step that needs more ends with a report, exit code 1");
  add_config_option(*command);
  add_json_option(*command, a.json_output);
  command->footer(
      "The step is the real one, on tensors without values; weights are not read. Predicted bytes come from the "
      "layout's\n"
      "formulas alone (include/octavo/plan/traffic.h); if what the step books differs, the exit code is 1.\n"
      "Examples:\n"
      "  octavo dryrun config.json --layout \"data=64:zero1\" --batch 256 --seq-len 4096 --micro-batch 1 --dtype bf16\n"
      "  octavo dryrun config.json --layout data=3 --batch 4 --all-distinct\n"
      "  octavo dryrun config.json --seq-len 8192 --memory-limit 80GB");
  command->callback([arguments, &run] { run = [arguments] { return run_dryrun(*arguments); }; });
}

}  // namespace octavo::cli
