#include <c10/util/Exception.h>

#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "octavo/base/error.h"
#include "octavo/cli/commands.h"

namespace octavo {
namespace {

enum ExitCode { kFine = 0, kCheckFailed = 1, kUsage = 2, kRankLost = 3, kOurBug = 70 };

int fail(ExitCode code, const std::string& message) {
  std::cout.flush();
  std::cerr << "octavo: " << message << "\n";
  return code;
}

/// CLI11 explains in several lines; the first says it.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

int parse_and_run(const std::vector<std::string>& arguments, const ProgramContext& context) {
  cli::ProgramApp program(
      "Octavo lays a language model out over many ranks, says what that costs, runs it, and shows that what "
      "ran is what was planned.",
      "octavo");
  program.context = context;
  cli::Runner run;
  program.set_version_flag("--version", cli::version_text);
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(28);
  program.footer(
      "Examples:\n"
      "  octavo train --model config.json --data text.txt --layout data=4 --steps 200\n"
      "  octavo verify --model DIR --layout data=2:zero1\n"
      "  octavo layout DIR --layout data=2\n"
      "`octavo COMMAND --help` lists the options of a command.");
  cli::add_train_command(program, run);
  cli::add_eval_command(program, run);
  cli::add_verify_command(program, run);
  cli::add_layout_command(program, run);
  cli::add_dryrun_command(program, run);
  std::vector<std::string> reversed = cli::with_config_file(program, arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    program.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::cout << program.help();
    return kFine;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << program.help("", CLI::AppFormatMode::All);
    return kFine;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << "\n";
    return kFine;
  } catch (const CLI::ParseError& error) {
    return fail(kUsage, "[cli] " + first_line(error.what()) + " (see octavo --help)");
  }
  if (!run) {
    std::cout << program.help();
    return arguments.empty() ? kFine : kUsage;
  }
  return run();
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const ProgramContext& context) {
  try {
    const int code = parse_and_run(arguments, context);
    if (!std::cout.flush()) return fail(kUsage, "[cli] standard output cannot be written");
    return code;
  } catch (const UsageError& error) {
    return fail(kUsage, error.what());
  } catch (const CheckFailed& error) {
    return fail(kCheckFailed, error.what());
  } catch (const CommError& error) {
    const int code = fail(kRankLost, error.what());
    std::cerr << error.report();
    return code;
  } catch (const std::bad_alloc&) {
    return fail(kCheckFailed,
                "[memory] the machine has no memory left; use a smaller micro-batch or --stash recompute");
  } catch (const c10::Error& error) {
    return fail(kOurBug, std::string("this is a bug of octavo, please report it: ") +
                             first_line(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return fail(kOurBug, std::string("this is a bug of octavo, please report it: ") + first_line(error.what()));
  }
}

}  // namespace octavo
