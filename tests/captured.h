// What is said on stdout and stderr while something runs in this process.
#pragma once

#include <iostream>
#include <sstream>
#include <string>

namespace octavo::testing {

struct Captured {
  int code;
  std::string out, err;
};

/// `run` returns the exit code, and throws nothing.
template <class Run>
Captured capture(const Run& run) {
  std::ostringstream out, err;
  auto* const old_out = std::cout.rdbuf(out.rdbuf());
  auto* const old_err = std::cerr.rdbuf(err.rdbuf());
  const int code = run();
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  return {code, out.str(), err.str()};
}

}  // namespace octavo::testing
