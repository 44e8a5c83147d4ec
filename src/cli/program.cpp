#include "cli/command.h"
#include "cli/core/commands.h"
#include "octavo/cli/commands.h"

namespace octavo {

int run_program(const std::vector<std::string>& arguments, const ProgramContext& context) {
  cli::ProgramApp program(
      "Octavo lays a language model out over many ranks, says what that costs, runs it, and shows that what "
      "ran is what was planned.",
      "octavo");
  program.context = context;
  program.set_version_flag("--version", cli::version_text);
  program.footer(
      "Examples:\n"
      "  octavo train --model config.json --data text.txt --layout data=4 --steps 200\n"
      "  octavo verify --model DIR --layout data=2:zero1\n"
      "  octavo layout DIR --layout data=2\n"
      "`octavo COMMAND --help` lists the options of a command.");
  const auto add_commands = [](CLI::App& app, cli::Runner& run) {
    cli::add_train_command(app, run);
    cli::add_eval_command(app, run);
    cli::add_verify_command(app, run);
    cli::add_layout_command(app, run);
    cli::add_dryrun_command(app, run);
    cli::add_core_commands(app, run);
  };
  return cli::run_commands(program, add_commands, arguments);
}

}  // namespace octavo
