// What the commands share: a command is a set of options and something to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "octavo/cli/commands.h"
#include "octavo/dataset/token_source.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/spec/model_spec.h"
#include "octavo/train/rank_session.h"

namespace octavo::cli {

/// Every command adds itself to the program; `run` is set to what the chosen one does and returns the exit code.
using Runner = std::function<int()>;
void add_train_command(CLI::App& program, Runner& run);
void add_eval_command(CLI::App& program, Runner& run);
void add_verify_command(CLI::App& program, Runner& run);
void add_layout_command(CLI::App& program, Runner& run);
void add_dryrun_command(CLI::App& program, Runner& run);

/// Options that several commands spell the same way.
struct ModelOption {
  std::string path;
};
void add_model_option(CLI::App& command, ModelOption& option, bool required = true);

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

  Layout parsed_layout() const { return parse_layout(layout); }
  ElementType parsed_dtype() const { return parse_element_type(dtype); }
  /// With the launcher's world, if there is one. Throws UsageError for a limit that is no size, fewer than 1 thread or
  /// second, or a layout that has not as many ranks as the launcher started.
  SessionOptions session(const Layout& parsed) const;
};
/// `command` must be a subcommand of a ProgramApp.
void add_rank_options(CLI::App& command, RankOptionsText& options);
void add_json_option(CLI::App& command, bool& json);

/// A line that says that ranks share cores; empty if they do not.
std::string oversubscription(const SessionOptions& session);

/// What the tensor axis does not divide, what the layout does about it, and the price: a line each. Throws UsageError
/// where the layout refuses.
std::vector<std::string> misfit_notes(const ParamTable& table, const Layout& layout, ElementType dtype);

/// Cores of this machine, at least 1.
int num_cores();

/// "2GB", "1.5 GB", "500MB", "64KiB" or a number of bytes. Throws UsageError naming `option`.
Bytes parse_bytes(const std::string& text, const std::string& option);

/// Throws UsageError if the file's ids reach beyond the model's vocabulary.
void check_vocabulary(const TokenSource& tokens, const ModelSpec& model);

/// Options of the command from the TOML file behind --config, for those that `arguments` does not give itself. Throws
/// UsageError for a key that is no option, naming the nearest.
std::vector<std::string> with_config_file(const CLI::App& program, std::vector<std::string> arguments);

/// "octavo 0.1.0", libtorch's version, the instruction set, the backends.
std::string version_text();

}  // namespace octavo::cli
