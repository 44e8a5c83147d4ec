// The program as it is built without libtorch: it says what a layout costs, and runs nothing.
#include <csignal>

#include "cli/core/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App program(
      "Octavo says what a layout of a language model over many ranks costs. (Built without libtorch: train, eval, "
      "verify, layout and dryrun are in the whole program.)",
      "octavo");
  program.set_version_flag("--version", "octavo 0.1.0\nwithout libtorch");
  program.footer("`octavo COMMAND --help` lists the options of a command.");
  return octavo::cli::run_commands(program, octavo::cli::add_core_commands,
                                   std::vector<std::string>(argv + 1, argv + argc));
}
