#include "octavo/validation/golden_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/validation/collective_validation.h"
#include "octavo/validation/memory_validation.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr double kLeastTau = 0.8, kLeastOrder = 0.9;

void check_rows(FileReport& report) {
  for (const ValidationRow& row : report.rows) {
    if (row.is_used() && !row.is_within()) {
      report.failures.push_back(
          cat(row.id, ": ", row.quantity, " is off by ", percent(row.error()), ", allowed ", percent(row.tolerance)));
    }
  }
}

void check_time(FileReport& report) {
  for (const SourceError& source : report.time->sources) {
    if (!source.is_within()) {
      report.failures.push_back(cat("step times of ", source.source, ": mean error ", percent(source.mean),
                                    ", allowed ", percent(*source.limit)));
    }
  }
  for (const RankingResult& ranking : report.time->rankings) {
    if (!ranking.is_used()) continue;
    if (!ranking.best_is_right) report.failures.push_back(cat(ranking.id, ": the best layout is another's"));
    if (ranking.tau < kLeastTau) {
      report.failures.push_back(cat(ranking.id, ": Kendall tau ", fixed(ranking.tau, 2), ", at least ", kLeastTau));
    }
  }
  for (const PairOrder& order : report.time->groups) {
    if (order.right < kLeastOrder * order.pairs) {
      report.failures.push_back(cat("group ", order.group, ": ", order.right, " of ", order.pairs, " pairs in order"));
    }
  }
}

/// "[spec] a text" without what is in brackets in front.
std::string without_tag(const std::string& text) {
  const std::size_t end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}

FileReport validate_file(const std::filesystem::path& path) {
  const json file = parse_json(read_text_file(path.string(), "[validation]"), "[validation] " + path.string());
  FileReport report;
  report.name = path.filename().string();
  const auto text = [&file](const char* key) {
    return file.is_object() && file.contains(key) && file[key].is_string() ? file[key].get<std::string>() : "";
  };
  report.title = text("title");
  if (file.is_object() && file.contains("n_cases") && file.contains("cases") && file["cases"].is_array() &&
      file["n_cases"] != file["cases"].size()) {
    report.note = cat("It says n_cases ", file["n_cases"].dump(), " and holds ", file["cases"].size());
  }
  const std::string dataset = text("dataset");
  try {
    if (dataset == "measured_step_times") {
      report.time = validate_time(file);
      check_time(report);
    } else if (dataset == "memory_measured") {
      report.rows = validate_memory(file);
      check_rows(report);
    } else if (dataset == "hardware") {
      report.rows = validate_collectives(file);
      check_rows(report);
    } else if (!file.is_object() || !file.contains("cases")) {
      report.why = "it has no list of cases";
      return report;
    }
    if (dataset != "memory_measured") report.identities = check_identities(file);  // there rows answer them too
    for (const std::string& wrong : report.identities.wrong) report.failures.push_back(wrong);
  } catch (const UsageError& error) {
    throw UsageError(cat("[validation] ", path.string(), ": ", without_tag(error.what())));
  } catch (const json::exception&) {
    throw UsageError(cat("[validation] ", path.string(),
                         ": a value has another type than its key says; those of tests/data/golden show the format"));
  }
  return report;
}

}  // namespace

std::vector<FileReport> validate_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  if (error)
    throw UsageError(cat("[validation] --validate ", folder, ": ", error.message(), "; name a folder of golden files"));
  if (paths.empty()) {
    throw UsageError(cat("[validation] --validate ", folder, ": holds no *.json; name a folder of golden files"));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<FileReport> reports;
  for (const fs::path& path : paths) reports.push_back(validate_file(path));
  return reports;
}

}  // namespace octavo
