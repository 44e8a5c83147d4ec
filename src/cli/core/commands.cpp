#include "cli/core/commands.h"

namespace octavo::cli {

void add_core_commands(CLI::App&, Runner&) {}

}  // namespace octavo::cli
