// A ledger for people: as a table, and beside what was predicted.
#include <algorithm>

#include "octavo/base/text.h"
#include "octavo/trace/ledger.h"

namespace octavo {
namespace {

using Line = std::vector<std::string>;

const LedgerRow* find_row(std::span<const LedgerRow> rows, const LedgerRow& like) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const LedgerRow& row) {
    return row.group == like.group && row.purpose == like.purpose && row.kind == like.kind;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string difference(const LedgerRow& named, std::int64_t booked_count, Bytes booked, std::int64_t predicted_count,
                       Bytes predicted) {
  const auto text = [](std::int64_t count, Bytes bytes) {
    return cat(with_commas(count), " of ", with_commas(bytes), " B");
  };
  return cat(named.group, " ", purpose_name(named.purpose), " ", collective_name(named.kind), ": booked ",
             text(booked_count, booked), ", predicted ", text(predicted_count, predicted));
}

Line line_of(const LedgerRow& row, bool with_prediction, const LedgerRow* predicted) {
  Line line = {row.group, std::string(purpose_name(row.purpose)), std::string(collective_name(row.kind)),
               with_commas(row.count)};
  if (with_prediction) line.push_back(format_bytes(predicted == nullptr ? 0 : predicted->logical));
  for (std::string& text : Line{format_bytes(row.logical), format_bytes(row.copied), format_seconds(row.waited),
                                format_seconds(row.skew), format_seconds(row.waited - row.skew)}) {
    line.push_back(std::move(text));
  }
  return line;
}

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
  std::vector<Line> lines = {{"axes", "purpose", "kind", "count"}};
  if (predicted != nullptr) lines[0].emplace_back("predicted");
  for (const char* name : {"logical", "copied", "waiting", "skew", "exposed"}) lines[0].emplace_back(name);
  for (const LedgerRow& row : rows) {
    lines.push_back(line_of(row, predicted != nullptr, predicted == nullptr ? nullptr : find_row(*predicted, row)));
  }
  if (predicted != nullptr) {
    for (const LedgerRow& row : *predicted) {
      if (find_row(rows, row) != nullptr) continue;
      const LedgerRow nothing{.group = row.group, .purpose = row.purpose, .kind = row.kind};
      lines.push_back(line_of(nothing, true, &row));
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
