// What all commands share: a command is a set of options and something to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "octavo/base/units.h"

namespace octavo::cli {

/// Every command adds itself to the program; `run` is set to what the chosen one does and returns the exit code.
using Runner = std::function<int()>;

/// Parses `octavo ARGS...` with the commands that `add_commands` gives to `program`, runs the one chosen, and returns
/// the exit code (octavo/cli/commands.h). Prints one line per error to stderr; throws nothing.
int run_commands(CLI::App& program, const std::function<void(CLI::App&, Runner&)>& add_commands,
                 const std::vector<std::string>& arguments);

// Options that several commands spell the same way.

struct ModelOption {
  std::string path;
};
void add_model_option(CLI::App& command, ModelOption& option, bool required = true);
void add_json_option(CLI::App& command, bool& json);
/// --config: the command's options from a TOML file (with_config_file reads it).
void add_config_option(CLI::App& command);

/// An option of the command that is given an empty text, as an unset variable of a shell does, is an error.
void refuse_empty_values(CLI::App& command);

/// "2GB", "1.5 GB", "500MB", "64KiB" or a number of bytes. Throws UsageError naming `option`.
Bytes parse_bytes(const std::string& text, const std::string& option);
/// "131072", "128K", "4M": K and M are 1,024 and 1,048,576. Throws UsageError naming `option`, also for less than one
/// token and more than 2^40.
std::int64_t parse_tokens(const std::string& text, const std::string& option);
/// "4096..262144" (doubling), "4096,32768", in the order written. Throws as parse_tokens, and where a range falls.
std::vector<std::int64_t> parse_lengths(const std::string& text, const std::string& option);

/// The same for whole numbers from 1 to `most`: "1..16" (doubling), "2,3,4".
std::vector<int> parse_counts(const std::string& text, const std::string& option, int most);

/// `text` as all of `file`, or nothing: what stood in it stays if it cannot be written. Throws UsageError naming
/// `option`.
void write_whole_file(const std::string& file, const std::string& text, const std::string& option);

/// Options of the command from the TOML file behind --config, for those that `arguments` does not give itself. Throws
/// UsageError for a key that is no option, naming the nearest.
std::vector<std::string> with_config_file(const CLI::App& program, std::vector<std::string> arguments);

}  // namespace octavo::cli
