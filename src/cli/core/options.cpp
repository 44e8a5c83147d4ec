#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

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

void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_expected_min() < 1) continue;  // flags
    option->check([](const std::string& value) {
      const bool is_blank = value.find_first_not_of(" \t\n\r") == std::string::npos;
      return is_blank ? "an empty value; leave the option out" : "";
    });
  }
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

std::int64_t parse_tokens(const std::string& text, const std::string& option) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  for (char& letter : unit) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  const double times = unit.empty() ? 1 : unit == "K" ? 1024 : unit == "M" ? 1048576 : unit == "G" ? 1073741824 : 0;
  const double tokens = number * times;
  if (error != std::errc() || !(tokens >= 1) || tokens > static_cast<double>(kMost) || tokens != std::floor(tokens)) {
    throw UsageError(cat("[cli] ", option, " ", in_quotes(text), " is no number of tokens from 1 to ",
                         with_commas(kMost), "; write 131072, 128K (x 1,024) or 4M (x 1,048,576)"));
  }
  return static_cast<std::int64_t>(tokens);
}

namespace {

/// Numbers and ranges that double, each number as `parse` reads it, once.
template <class Number, class Parse>
std::vector<Number> parse_list(const std::string& text, const std::string& option, const Parse& parse) {
  std::vector<Number> numbers;
  for (const std::string& word : split(text, ',')) {
    const std::size_t dots = word.find("..");
    const Number first = parse(word.substr(0, dots));
    const Number last = dots == std::string::npos ? first : parse(word.substr(dots + 2));
    if (last < first) throw UsageError(cat("[cli] ", option, " ", in_quotes(word), ": ", last, " is below ", first));
    for (Number number = first; number <= last; number *= 2) {
      if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
    }
  }
  return numbers;
}

}  // namespace

std::vector<std::int64_t> parse_lengths(const std::string& text, const std::string& option) {
  return parse_list<std::int64_t>(text, option, [&](const std::string& word) { return parse_tokens(word, option); });
}

std::vector<int> parse_counts(const std::string& text, const std::string& option, int most) {
  return parse_list<int>(text, option, [&](const std::string& word) {
    int count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1 || count > most) {
      throw UsageError(cat("[cli] ", option, " ", in_quotes(word, 30), " is no whole number from 1 to ",
                           with_commas(most), "; write 1..16 (doubling) or 2,3,4"));
    }
    return count;
  });
}

void write_whole_file(const std::string& file, const std::string& text, const std::string& option) {
  std::error_code error;
  if (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error)) {
    throw UsageError(cat("[cli] ", option, " ", file, ": is no regular file; name another"));
  }
  const std::string part = file + ".part";
  errno = 0;
  std::ofstream out(part);
  out << text;
  out.close();
  const int reason = errno;
  if (out) std::filesystem::rename(part, file, error);
  if (!out || error) {
    const std::string why = error ? error.message() : std::strerror(reason);
    std::filesystem::remove(part, error);
    throw UsageError(cat("[cli] ", option, " ", file, ": cannot be written (", why, "); name a file that can be"));
  }
}

}  // namespace octavo::cli
