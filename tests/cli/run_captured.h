// Runs the program in this process and keeps what it says.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "octavo/cli/commands.h"

namespace octavo::testing {

struct Captured {
  int code;
  std::string out, err;
};

inline Captured run_captured(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  auto* const old_out = std::cout.rdbuf(out.rdbuf());
  auto* const old_err = std::cerr.rdbuf(err.rdbuf());
  const int code = run_program(arguments);
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  return {code, out.str(), err.str()};
}

}  // namespace octavo::testing
