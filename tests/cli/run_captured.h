// Runs the program in this process and keeps what it says.
#pragma once

#include <string>
#include <vector>

#include "captured.h"
#include "octavo/cli/commands.h"

namespace octavo::testing {

inline Captured run_captured(const std::vector<std::string>& arguments) {
  return capture([&] { return run_program(arguments); });
}

}  // namespace octavo::testing
