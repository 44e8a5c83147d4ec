// The program's commands, for main() and for tests.
#pragma once

#include <string>
#include <vector>

#include "octavo/comm/launch.h"
#include "octavo/trace/live_recorders.h"

namespace octavo {

/// What the program finds around it; tests leave it out.
struct ProgramContext {
  VariableReader variable = nullptr;   // reads the launcher's environment; null: there is none
  LiveRecorders* recorders = nullptr;  // lists the ranks while they run
};

/// Runs `octavo ARGS...` and returns its exit code: 0 fine, 1 a check failed, 2 wrong usage or input, 3 a rank was
/// lost, 70 our bug. Prints results to stdout and one line per error to stderr; throws nothing.
int run_program(const std::vector<std::string>& arguments, const ProgramContext& context = {});

}  // namespace octavo
