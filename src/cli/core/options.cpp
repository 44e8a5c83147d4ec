#include <algorithm>
#include <charconv>

#include "cli/core/command.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {

void add_model_option(CLI::App& command, ModelOption& option, bool required) {
  auto* flag = command.add_option("--model,model", option.path,
                                  "A Hugging Face folder (config.json and safetensors), or a config.json alone");
  if (required) flag->required();
}

void add_json_option(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON for programs");
}

void add_config_option(CLI::App& command) {
  command.add_option("--config", "A TOML file with options of this command under the same names");
}

Bytes parse_bytes(const std::string& text, const std::string& option) {
  static const std::vector<std::pair<std::string, double>> kUnits = {
      {"kib", 1024.0}, {"mib", 1048576.0}, {"gib", 1073741824.0}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9},
      {"b", 1.0},      {"", 1.0}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size() - end);
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (error == std::errc() && number > 0 && number < 9e18) {
    for (const auto& [name, bytes] : kUnits) {
      if (unit == name && number * bytes >= 1 && number * bytes < 9e18) return static_cast<Bytes>(number * bytes);
    }
  }
  throw UsageError(cat("[cli] ", option, " \"", text, "\" is no size; write it as 2GB, 500MB or a number of bytes"));
}

}  // namespace octavo::cli
