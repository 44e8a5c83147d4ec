#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/status_signal.h"
#include "octavo/cli/commands.h"

namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end a training run
  octavo::LiveRecorders recorders;
  int code;
  {
    const octavo::cli::StatusSignal status(recorders);
    code = octavo::run_program(std::vector<std::string>(argv + 1, argv + argc),
                               {.variable = environment, .recorders = &recorders});
  }
  constexpr int kRankLost = 3;
  if (code == kRankLost) {
    // What is left of connections to lost ranks must not hold up the restart.
    std::cout.flush();
    std::cerr.flush();
    std::_Exit(code);
  }
  return code;
}
