// What the commands that need libtorch share.
#pragma once

#include <string>

#include "cli/core/command.h"
#include "octavo/cli/commands.h"
#include "octavo/dataset/token_source.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/spec/model_spec.h"
#include "octavo/train/rank_session.h"

namespace octavo::cli {

void add_train_command(CLI::App& program, Runner& run);
void add_eval_command(CLI::App& program, Runner& run);
void add_verify_command(CLI::App& program, Runner& run);
void add_layout_command(CLI::App& program, Runner& run);
void add_dryrun_command(CLI::App& program, Runner& run);

/// The program as its commands see it: with what it found around it.
struct ProgramApp : CLI::App {
  using CLI::App::App;
  ProgramContext context;
};

struct RankOptionsText {
  std::string layout;
  std::string dtype = "fp32";
  std::string memory_limit;  // "2GB", "500MB", bytes
  int threads_per_rank = 0;  // 0: the cores shared out
  int deadline_seconds = 60;
  bool check_collectives = false;
  std::string emulate_link;           // "5GB/s,20us"
  ProgramContext context;             // the program's
  const CLI::App* command = nullptr;  // that the options belong to

  Layout parsed_layout() const { return parse_runnable_layout(layout); }
  ElementType parsed_dtype() const { return parse_element_type(dtype); }
  /// With the launcher's world, if there is one. Throws UsageError for a limit that is no size, fewer than 1 thread or
  /// second, or a layout that has not as many ranks as the launcher started.
  SessionOptions session(const Layout& parsed) const;
};
/// `command` must be a subcommand of a ProgramApp.
void add_rank_options(CLI::App& command, RankOptionsText& options);

/// A line that says that ranks share cores; empty if they do not.
std::string oversubscription(const SessionOptions& session);

/// What the tensor axis does not divide, what the layout does about it, and the price: a line each. Throws UsageError
/// where the layout refuses.
std::vector<std::string> misfit_notes(const ParamTable& table, const Layout& layout, ElementType dtype);

/// Cores of this machine, at least 1.
int num_cores();

/// Throws UsageError if the file's ids reach beyond the model's vocabulary.
void check_vocabulary(const TokenSource& tokens, const ModelSpec& model);

/// "octavo 0.1.0", libtorch's version, the instruction set, the backends.
std::string version_text();

}  // namespace octavo::cli
