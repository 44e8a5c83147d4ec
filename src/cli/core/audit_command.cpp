// octavo audit: what of a model a layout divides, and what it costs where it does not.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/core/audit_report.h"
#include "cli/core/commands.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

struct AuditArguments {
  ModelOption model;
  std::string layout, degrees = "1..64", dtype = "bf16";
  std::string sequence_length = "4096";
  std::int64_t micro_batches = 32;
  std::optional<std::int64_t> rank, world;
  bool strict = false, json_output = false;
};

std::int64_t parse_degree(const std::string& word, const std::string& text) {
  constexpr std::int64_t kMost = 4096;
  std::int64_t degree = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), degree);
  if (word.empty() || error != std::errc() || end != word.data() + word.size() || degree < 1 || degree > kMost) {
    throw UsageError(cat("[cli] --degrees ", in_quotes(text), ": ", in_quotes(word), " is no degree from 1 to ", kMost,
                         "; write 1..64, or 1,2,4,8"));
  }
  return degree;
}

/// "1..64", "8", "1,2,16..32": ascending, each once.
std::vector<std::int64_t> parse_degrees(const std::string& text) {
  std::set<std::int64_t> degrees;
  for (const std::string& word : split(text, ',')) {
    const std::size_t dots = word.find("..");
    const std::int64_t first = parse_degree(word.substr(0, dots), text);
    const std::int64_t last = dots == std::string::npos ? first : parse_degree(word.substr(dots + 2), text);
    if (last < first) throw UsageError(cat("[cli] --degrees ", in_quotes(text), ": ", last, " is below ", first));
    for (std::int64_t degree = first; degree <= last; ++degree) degrees.insert(degree);
  }
  return {degrees.begin(), degrees.end()};
}

void check_count(const char* option, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most) throw UsageError(cat("[cli] ", option, " ", value, ": use 1 to ", most));
}

/// The world must be the layout's.
void check_world(std::int64_t world, const Layout& layout) {
  const std::int64_t ranks = layout.world_size();
  if (world == ranks) return;
  if (world < 1) throw UsageError(cat("[cli] --world ", world, ": a world has at least 1 rank"));
  if (world % ranks == 0) {
    throw UsageError(cat("[cli] --world ", world, ": the degrees of \"", layout.to_string(), "\" multiply to ", ranks,
                         ranks == 1 ? " rank" : " ranks", "; the nearest world is ", ranks, ", or ", world,
                         " with data=", layout.mesh.size(Axis::Data) * (world / ranks)));
  }
  const std::int64_t below = world / ranks * ranks;
  throw UsageError(cat("[cli] --world ", world, ": the degrees of \"", layout.to_string(), "\" multiply to ", ranks,
                       " ranks; the nearest worlds are ", below > 0 ? cat(below, " and ") : std::string(),
                       below + ranks, ", with more data parallelism where that is more than ", ranks));
}

int run_audit(const AuditArguments& arguments) {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 26, kMostMicroBatches = 1 << 20;
  const std::int64_t sequence_length = parse_tokens(arguments.sequence_length, "--seq-len");
  check_count("--seq-len", sequence_length, kMostTokens);
  check_count("--micro-batches", arguments.micro_batches, kMostMicroBatches);
  AuditOptions options{.layout = parse_layout(arguments.layout),
                       .degrees = parse_degrees(arguments.degrees),
                       .sequence_length = sequence_length,
                       .compute = parse_element_type(arguments.dtype),
                       .micro_batches = static_cast<int>(arguments.micro_batches),
                       .rank = {}};
  constexpr std::int64_t kMostRanks = 1 << 20, kMostTensor = 512;
  if (options.layout.world_size() > kMostRanks || options.layout.mesh.size(Axis::Tensor) > kMostTensor) {
    throw UsageError(cat("[cli] --layout \"", options.layout.to_string(), "\": an audit goes to tensor=", kMostTensor,
                         " and ", with_commas(kMostRanks), " ranks; lower a degree"));
  }
  if (arguments.world) check_world(*arguments.world, options.layout);
  if (arguments.rank) {
    if (*arguments.rank < 0 || *arguments.rank >= options.layout.world_size()) {
      throw UsageError(
          cat("[cli] --rank ", *arguments.rank, ": the layout has ranks 0 to ", options.layout.world_size() - 1));
    }
    options.rank = static_cast<int>(*arguments.rank);
  }
  const ModelSpec model = read_model_spec(arguments.model.path);
  const AuditReport report = make_audit_report(model, options);
  if (arguments.json_output) {
    std::cout << audit_json(model, report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cout << audit_text(model, report);
  }
  if (!arguments.strict || report.problems.empty()) return 0;
  throw CheckFailed(cat("[cli] --strict: ", report.problems.size(),
                        report.problems.size() == 1 ? " thing is" : " things are",
                        " not even; the first: ", report.problems.front()));
}

}  // namespace

void add_audit_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command = program.add_subcommand("audit", "What of a model a layout divides, and what it costs elsewhere");
  add_model_option(*command, arguments->model);
  command->add_option("--layout", arguments->layout, "Axes and degrees, as \"pipeline=4 tensor=8\"; none: one rank");
  command->add_option("--degrees", arguments->degrees, "Degrees to try, as 1..64 or 1,2,4")->capture_default_str();
  command->add_option("--seq-len,--sequence", arguments->sequence_length, "Tokens of a sequence: 4096 or 128K")
      ->capture_default_str();
  command->add_option("--micro-batches", arguments->micro_batches, "Per step, for the pipeline's idle time")
      ->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "fp32, bf16 or fp64")->capture_default_str();
  command->add_option("--rank", arguments->rank, "The rank that is shown (0)");
  command->add_option("--world", arguments->world, "Ranks that there are; an error unless the layout has as many");
  command->add_flag("--strict", arguments->strict, "Exit 1 for any copy, padding or unequal stages");
  add_json_option(*command, arguments->json_output);
  add_config_option(*command);
  refuse_empty_values(*command);
  command->footer("Example: octavo audit config.json --layout \"pipeline=4 tensor=8:replicate\" --rank 9");
  command->callback([arguments, &run] { run = [arguments] { return run_audit(*arguments); }; });
}

}  // namespace octavo::cli
