#include <string>
#include <vector>

#include "octavo/cli/commands.h"

int main(int argc, char** argv) {
  return octavo::run_program(std::vector<std::string>(argv + 1, argv + argc));
}
