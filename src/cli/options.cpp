#include <ATen/Version.h>
#include <ATen/native/DispatchStub.h>
#include <torch/version.h>

#include <algorithm>
#include <thread>

#include "cli/command.h"
#include "cli/run_facts.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/misfit.h"

namespace octavo::cli {

int num_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void add_rank_options(CLI::App& command, RankOptionsText& options) {
  options.command = &command;
  if (const auto* program = dynamic_cast<const ProgramApp*>(command.get_parent())) options.context = program->context;
  command.add_option("--layout", options.layout, "Axes and degrees, as \"data=4\" or \"data=2:zero1\"; none: one rank");
  command.add_option("--dtype", options.dtype, "Compute type: fp32, bf16 (with fp32 masters and sums) or fp64")
      ->capture_default_str();
  command.add_option("--threads-per-rank", options.threads_per_rank,
                     "Threads of libtorch's operators per rank; default: the cores shared out, at least 1");
  command.add_option("--memory-limit", options.memory_limit,
                     "Bytes of tensors per rank, as 2GB; an allocation beyond it is refused with a report");
  command.add_option("--deadline", options.deadline_seconds, "Seconds that a rank waits for another")
      ->capture_default_str();
  command.add_flag("--check-collectives", options.check_collectives,
                   "Compare every collective with the other ranks' before it runs (debugging; slower)");
  command.add_option("--emulate-link", options.emulate_link,
                     "Delay what ranks say to each other as a link would, as \"5GB/s,20us\": to see what hides");
  add_config_option(command);
}

namespace {

void check_world(const Layout& layout, const Launch& launch) {
  const int ranks = layout.world_size();
  if (ranks == launch.world_size) return;
  throw UsageError(cat("[cli] --layout \"", layout.mesh.to_string(), "\" has ", ranks, ranks == 1 ? " rank" : " ranks",
                       ", but ", launch.launcher, " started ", launch.world_size, "; start ", ranks,
                       " processes, or give a layout of ", launch.world_size,
                       ", as --layout data=", launch.world_size));
}

}  // namespace

SessionOptions RankOptionsText::session(const Layout& parsed) const {
  SessionOptions options;
  options.num_ranks = parsed.world_size();
  options.check_collectives = check_collectives;
  options.recorders = context.recorders;
  if (!emulate_link.empty()) options.link = parse_link(emulate_link);
  if (context.variable) options.launch = read_launch(context.variable);
  if (options.launch) check_world(parsed, *options.launch);
  if (options.launch) options.facts = run_facts(*command);
  const int ranks_here = options.launch ? options.launch->ranks_on_machine : options.num_ranks;
  if (threads_per_rank < 0) throw UsageError(cat("[cli] --threads-per-rank ", threads_per_rank, ": use at least 1"));
  options.threads_per_rank = threads_per_rank > 0 ? threads_per_rank : std::max(1, num_cores() / ranks_here);
  if (deadline_seconds < 1) throw UsageError(cat("[cli] --deadline ", deadline_seconds, ": use at least 1 second"));
  options.deadline = std::chrono::seconds(deadline_seconds);
  if (!memory_limit.empty()) options.memory_limit = parse_bytes(memory_limit, "--memory-limit");
  constexpr std::int64_t kMostThreads = 1024;
  const std::int64_t threads = std::int64_t{options.launch ? 1 : options.num_ranks} * options.threads_per_rank;
  if (threads > kMostThreads) {
    throw UsageError(cat("[cli] ", options.num_ranks, " ranks x ", options.threads_per_rank,
                         " threads in one process; use at most ", kMostThreads, " threads"));
  }
  return options;
}

std::string oversubscription(const SessionOptions& options) {
  const int ranks = options.launch ? options.launch->ranks_on_machine : options.num_ranks;
  if (ranks * options.threads_per_rank <= num_cores()) return "";
  return cat(ranks, ranks == 1 ? " rank" : " ranks", " x ", options.threads_per_rank, " threads share ", num_cores(),
             " cores: times are not those of a core each");
}

void check_vocabulary(const TokenSource& tokens, const ModelSpec& model) {
  if (tokens.vocab_size() <= model.vocab_size) return;
  throw UsageError(cat("[cli] ", tokens.name(), " has ids below ", tokens.vocab_size(), ", the model a vocabulary of ",
                       model.vocab_size, "; use data made with this model's tokenizer (tools/tokenize.py)"));
}

std::string version_text() {
  return cat("octavo 0.1.0\nlibtorch ", TORCH_VERSION, "\ninstruction set ", at::get_cpu_capability(),
             "\nbackends threads, gloo, record");
}

std::vector<std::string> misfit_notes(const ParamTable& table, const Layout& layout, ElementType dtype) {
  std::vector<std::string> notes;
  for (const MisfitPrice& price : misfit_prices(table, layout)) notes.push_back(misfit_text(price, layout, dtype));
  return notes;
}

}  // namespace octavo::cli
