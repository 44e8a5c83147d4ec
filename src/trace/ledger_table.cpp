// A ledger for people: as a table, and beside what was predicted.
#include <algorithm>

#include "octavo/base/text.h"
#include "octavo/trace/ledger.h"

namespace octavo {
namespace {

using Line = std::vector<std::string>;

std::string difference(const LedgerRow& named, std::int64_t booked_count, Bytes booked, std::int64_t predicted_count,
                       Bytes predicted) {
  const auto text = [](std::int64_t count, Bytes bytes) {
    return cat(with_commas(count), " of ", with_commas(bytes), " B");
  };
  return cat(named.group, " ", purpose_name(named.purpose), " ", collective_name(named.kind), ": booked ",
             text(booked_count, booked), ", predicted ", text(predicted_count, predicted));
}

/// Which columns there are.
struct Columns {
  bool prediction;
  bool times;

  Line header() const {
    Line line = {"axes", "purpose", "kind", "count"};
    if (prediction) line.emplace_back("predicted");
    line.insert(line.end(), {"logical", "copied"});
    if (times) line.insert(line.end(), {"waiting", "skew", "exposed"});
    return line;
  }

  Line line(const LedgerRow& row, const LedgerRow* predicted) const {
    Line line = {row.group, std::string(purpose_name(row.purpose)), std::string(collective_name(row.kind)),
                 with_commas(row.count)};
    if (prediction) line.push_back(format_bytes(predicted == nullptr ? 0 : predicted->logical));
    line.insert(line.end(), {format_bytes(row.logical), format_bytes(row.copied)});
    if (times) {
      line.insert(line.end(),
                  {format_seconds(row.waited), format_seconds(row.skew), format_seconds(row.waited - row.skew)});
    }
    return line;
  }
};

std::string to_table(const std::vector<Line>& lines) {
  constexpr std::size_t kNumTextColumns = 3;  // left-aligned; numbers are right-aligned
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const Line& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column)
      widths[column] = std::max(widths[column], line[column].size());
  }
  std::string text;
  for (const Line& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column) {
      const std::string padding(widths[column] - line[column].size(), ' ');
      const bool last = column + 1 == line.size();
      text += column < kNumTextColumns ? line[column] + padding : padding + line[column];
      text += last ? "\n" : "  ";
    }
  }
  return text;
}

std::string table(std::span<const LedgerRow> rows, const std::span<const LedgerRow>* predicted) {
  const bool has_times = std::any_of(rows.begin(), rows.end(), [](const LedgerRow& row) { return row.waited > 0; });
  const Columns columns{.prediction = predicted != nullptr, .times = has_times};
  std::vector<Line> lines = {columns.header()};
  for (const LedgerRow& row : rows) {
    lines.push_back(columns.line(row, predicted == nullptr ? nullptr : find_row(*predicted, row)));
  }
  if (predicted != nullptr) {
    for (const LedgerRow& row : *predicted) {
      if (find_row(rows, row) != nullptr) continue;
      lines.push_back(columns.line({.group = row.group, .purpose = row.purpose, .kind = row.kind}, &row));
    }
  }
  return to_table(lines);
}

}  // namespace

std::vector<std::string> traffic_differences(std::span<const LedgerRow> predicted, std::span<const LedgerRow> booked) {
  std::vector<std::string> differences;
  for (const LedgerRow& row : booked) {
    const LedgerRow* expected = find_row(predicted, row);
    const std::int64_t count = expected == nullptr ? 0 : expected->count;
    const Bytes logical = expected == nullptr ? 0 : expected->logical;
    if (row.count != count || row.logical != logical) {
      differences.push_back(difference(row, row.count, row.logical, count, logical));
    }
  }
  for (const LedgerRow& row : predicted) {
    if (find_row(booked, row) == nullptr) differences.push_back(difference(row, 0, 0, row.count, row.logical));
  }
  return differences;
}

std::string ledger_table(std::span<const LedgerRow> rows) {
  return table(rows, nullptr);
}

std::string ledger_table(std::span<const LedgerRow> rows, std::span<const LedgerRow> predicted) {
  return table(rows, &predicted);
}

}  // namespace octavo
