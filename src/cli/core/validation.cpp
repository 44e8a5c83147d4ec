#include "cli/core/validation.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {

int run_validation(const std::string& folder, bool as_json) {
  const std::vector<FileReport> reports = validate_folder(folder);
  if (as_json) {
    std::cout << validation_json(reports).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cout << validation_text(reports);
  }
  check_within_limits(reports);
  return 0;
}

void check_within_limits(std::span<const FileReport> reports) {
  std::vector<std::string> failures;
  for (const FileReport& report : reports) {
    for (const std::string& failure : report.failures) failures.push_back(cat(report.name, ": ", failure));
  }
  if (failures.empty()) return;
  throw CheckFailed(cat("[cli] --validate: ", failures.size(), failures.size() == 1 ? " figure is" : " figures are",
                        " beyond the limit; the first: ", failures.front()));
}

}  // namespace octavo::cli
