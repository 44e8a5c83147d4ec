#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "cli/core/command.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

/// The value as it would be typed; nullopt for a table or a list.
std::optional<std::string> as_argument(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return cat(number->get());
  if (const auto* real = node.as_floating_point()) {
    std::ostringstream out;
    out.precision(17);
    out << real->get();
    return out.str();
  }
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

bool gives(const std::vector<std::string>& arguments, const std::string& option) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == option || argument.rfind(option + "=", 0) == 0;
  });
}

}  // namespace

std::vector<std::string> with_config_file(const CLI::App& program, std::vector<std::string> arguments) {
  std::string file;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--config" && i + 1 < arguments.size()) file = arguments[i + 1];
    if (arguments[i].rfind("--config=", 0) == 0) file = arguments[i].substr(9);
  }
  if (file.empty() || arguments.empty()) return arguments;
  const auto commands =
      program.get_subcommands([&](const CLI::App* command) { return command->get_name() == arguments.front(); });
  if (commands.empty()) return arguments;
  const CLI::App* command = commands.front();
  const std::vector<std::string> known = option_names(*command);

  std::error_code error;
  if (!std::filesystem::exists(file, error) || std::filesystem::is_directory(file, error)) {
    throw UsageError(cat("[cli] --config ", file,
                         std::filesystem::exists(file, error) ? " is a folder" : " does not exist",
                         "; name a TOML file with options of this command"));
  }
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& problem) {
    throw UsageError(cat("[cli] ", file, ":", problem.source().begin.line, ": ", problem.description()));
  }
  const bool has_positional_model =
      arguments.size() > 1 && arguments[1].rfind("-", 0) != 0;  // as in `octavo train DIR --config run.toml`
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (name == "config" || name == "help") {
      throw UsageError(cat("[cli] ", file, ": ", name, " cannot stand in a file; leave it out"));
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string close = nearest(name, known);
      throw UsageError(
          cat("[cli] ", file, ": ", name, " is no option of ", arguments.front(),
              close.empty() ? cat("; see octavo ", arguments.front(), " --help") : cat("; the nearest is ", close)));
    }
    const auto value = as_argument(node);
    if (!value) throw UsageError(cat("[cli] ", file, ": ", name, " must be a text, a number or true/false"));
    if (gives(arguments, "--" + name) || (name == "model" && has_positional_model)) continue;
    if (value->empty()) {  // "--name=" would take the next argument for its value
      arguments.insert(arguments.end(), {cat("--", name), ""});
    } else {
      arguments.push_back(cat("--", name, "=", *value));
    }
  }
  return arguments;
}

}  // namespace octavo::cli
