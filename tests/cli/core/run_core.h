// Runs a command that needs no libtorch in this process and keeps what it says.
#pragma once

#include <string>
#include <vector>

#include "captured.h"
#include "cli/core/commands.h"

namespace octavo::testing {

inline Captured run_core(const std::vector<std::string>& arguments) {
  CLI::App program("octavo", "octavo");
  return capture([&] { return cli::run_commands(program, cli::add_core_commands, arguments); });
}

/// `command` for a model of tests/data/configs.
inline Captured run_core(const std::string& command, const std::string& config, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {command, "tests/data/configs/" + config + ".json"});
  return run_core(arguments);
}

}  // namespace octavo::testing
