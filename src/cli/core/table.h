// Columns for people.
#pragma once

#include <string>
#include <vector>

namespace octavo::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  /// As many cells as the header has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Left-aligned columns, two spaces apart, a rule under the header.
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace octavo::cli
