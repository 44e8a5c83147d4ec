#include <csignal>
#include <string>
#include <vector>

#include "octavo/cli/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end a training run
  return octavo::run_program(std::vector<std::string>(argv + 1, argv + argc));
}
