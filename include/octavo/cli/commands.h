// The program's commands, for main() and for tests.
#pragma once

#include <string>
#include <vector>

namespace octavo {

/// Runs `octavo ARGS...` and returns its exit code: 0 fine, 1 a check failed, 2 wrong usage or input, 3 a rank was
/// lost, 70 our bug. Prints results to stdout and one line per error to stderr; throws nothing.
int run_program(const std::vector<std::string>& arguments);

}  // namespace octavo
