#include "cli/core/table.h"

#include <algorithm>

namespace octavo::cli {

std::string Table::to_string() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      line += rows_[r][i] + std::string(widths[i] - rows_[r][i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += std::string(widths[i], '-') + (i + 1 < widths.size() ? "  " : "\n");
    }
  }
  return text;
}

}  // namespace octavo::cli
