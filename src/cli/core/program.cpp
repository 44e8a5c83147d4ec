#include <algorithm>
#include <iostream>
#include <new>

#include "cli/core/command.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

enum ExitCode { kFine = 0, kCheckFailed = 1, kUsage = 2, kRankLost = 3, kOurBug = 70 };

/// One line, whatever a user's text in it holds.
int fail(ExitCode code, const std::string& message) {
  std::cout.flush();
  std::cerr << "octavo: " << printable(message) << "\n";
  return code;
}

/// CLI11 explains in several lines, libtorch in many; the first says it.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// "; did you mean --strict?" for the first argument that is no option of the command, if one is close.
std::string nearest_option(const CLI::App& program, const std::vector<std::string>& arguments) {
  const std::vector<const CLI::App*> chosen =
      program.get_subcommands([](const CLI::App* command) { return command->parsed(); });
  std::vector<std::string> names;
  for (const CLI::Option* option : (chosen.empty() ? &program : chosen.front())->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string close = nearest(name, names);
    return close.empty() ? "" : cat("; did you mean ", close, "?");
  }
  return "";
}

int parse_and_run(CLI::App& program, const std::function<void(CLI::App&, Runner&)>& add_commands,
                  const std::vector<std::string>& arguments) {
  Runner run;
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(28);
  add_commands(program, run);
  std::vector<std::string> reversed = with_config_file(program, arguments);
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
  } catch (const CLI::ExtrasError& error) {
    return fail(kUsage,
                cat("[cli] ", first_line(error.what()), nearest_option(program, arguments), " (see octavo --help)"));
  } catch (const CLI::ConversionError& error) {
    // "Could not convert: --top = abc"
    const std::string text = first_line(error.what());
    const std::size_t colon = text.find(": ");
    return fail(kUsage, cat("[cli] ", colon == std::string::npos ? text : text.substr(colon + 2),
                            ": is no whole number in range; write one, as 8 (see octavo --help)"));
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

int run_commands(CLI::App& program, const std::function<void(CLI::App&, Runner&)>& add_commands,
                 const std::vector<std::string>& arguments) {
  try {
    const int code = parse_and_run(program, add_commands, arguments);
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
  } catch (const std::exception& error) {
    return fail(kOurBug, std::string("this is a bug of octavo, please report it: ") + first_line(error.what()));
  }
}

}  // namespace octavo::cli
