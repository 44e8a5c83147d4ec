// The commands that need no libtorch: what a model and a layout cost, before anything runs.
#pragma once

#include "cli/core/command.h"

namespace octavo::cli {

/// All of the below.
void add_core_commands(CLI::App& program, Runner& run);

void add_audit_command(CLI::App& program, Runner& run);    // audit_command.cpp
void add_compare_command(CLI::App& program, Runner& run);  // compare_command.cpp
void add_plan_command(CLI::App& program, Runner& run);     // plan_command.cpp

}  // namespace octavo::cli
