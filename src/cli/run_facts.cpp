#include "cli/run_facts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "octavo/base/random.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kInputs = {"model", "data", "valid", "reference"};
constexpr std::array kOwn = {"out", "metrics", "config", "json", "help"};  // may differ, or say nothing

std::string file_facts(const fs::path& path) {
  constexpr std::int64_t kSample = 1 << 16;
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error) return "not readable";
  std::ifstream in(path, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(std::min(size, 2 * kSample)), '\0');
  const auto half = static_cast<std::streamsize>(bytes.size() / 2);
  in.read(bytes.data(), half);
  in.seekg(-(static_cast<std::streamoff>(bytes.size()) - half), std::ios::end);
  in.read(bytes.data() + half, static_cast<std::streamsize>(bytes.size()) - half);
  return cat(size, " bytes, hash ", hash_key(0, bytes));
}

/// Of a folder: the files that make a model or its numbers.
std::string input_facts(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return file_facts(path);
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if (extension != ".safetensors" && extension != ".json") continue;
    files.push_back(cat(entry->path().filename().string(), ": ", file_facts(entry->path())));
  }
  std::sort(files.begin(), files.end());
  return join(files, "; ");
}

}  // namespace

std::vector<std::string> run_facts(const CLI::App& command) {
  std::vector<std::string> facts = {cat("command ", command.get_name())};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) continue;
    std::string value = option->count() == 0 ? "by default" : join(option->reduced_results(), " ");
    if (std::find(kInputs.begin(), kInputs.end(), name) != kInputs.end() && option->count() > 0) {
      value = input_facts(value);
    }
    facts.push_back(cat(name, " ", value));
  }
  return facts;
}

}  // namespace octavo::cli
