#include "cli/core/commands.h"

namespace octavo::cli {

void add_core_commands(CLI::App& program, Runner& run) {
  add_audit_command(program, run);
  add_plan_command(program, run);
  add_compare_command(program, run);
}

}  // namespace octavo::cli
