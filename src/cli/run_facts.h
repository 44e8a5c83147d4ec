// What must be the same on all ranks of a run, as text: options, and what the files behind them hold.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octavo::cli {

/// A line per option of the command that was parsed, with its value; for options that name a file or folder, its size
/// and a hash of its beginning and end instead: machines may keep it in different places.
std::vector<std::string> run_facts(const CLI::App& command);

}  // namespace octavo::cli
