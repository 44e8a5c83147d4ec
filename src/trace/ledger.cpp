#include "octavo/trace/ledger.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr int kNumPurposes = static_cast<int>(Purpose::Control) + 1;
constexpr int kNumKinds = static_cast<int>(kAllCollectives.size());
constexpr int kRowsPerGroup = kNumPurposes * kNumKinds;
constexpr std::int64_t kNotKept = -1;  // before every entry of every step

}  // namespace

int Ledger::add_group(const std::string& name) {
  const auto known = std::find(groups_.begin(), groups_.end(), name);
  if (known != groups_.end()) return static_cast<int>(known - groups_.begin());
  groups_.push_back(name);
  totals_.resize(groups_.size() * kRowsPerGroup);
  return static_cast<int>(groups_.size()) - 1;
}

Ledger::Ticket Ledger::post(const Transfer& transfer) {
  const int row =
      transfer.group * kRowsPerGroup + static_cast<int>(transfer.purpose) * kNumKinds + static_cast<int>(transfer.kind);
  Total& total = totals_[row];
  ++total.count;
  total.logical += transfer.logical;
  total.copied += transfer.copied;
  if (!keep_entries_) return {.row = row, .entry = kNotKept};
  entries_.push_back({transfer, {}});
  return {.row = row, .entry = first_entry_ + static_cast<std::int64_t>(entries_.size()) - 1};
}

void Ledger::finish(Ticket ticket, const TransferTimes& times) {
  totals_[ticket.row].waited += times.waited;
  match(ticket, times);
}

void Ledger::match(Ticket ticket, const TransferTimes& times) {
  if (times.matched != 0) {
    totals_[ticket.row].skew += std::clamp(times.matched - (times.done - times.waited), 0.0, times.waited);
  }
  if (ticket.entry >= first_entry_) entries_[ticket.entry - first_entry_].times = times;
}

std::vector<LedgerRow> Ledger::rows() const {
  std::vector<LedgerRow> rows;
  for (std::size_t index = 0; index < totals_.size(); ++index) {
    const Total& total = totals_[index];
    if (total.count == 0 && total.waited == 0) continue;
    rows.push_back({.group = groups_[index / kRowsPerGroup],
                    .purpose = static_cast<Purpose>(index % kRowsPerGroup / kNumKinds),
                    .kind = static_cast<Collective>(index % kNumKinds),
                    .count = total.count,
                    .logical = total.logical,
                    .copied = total.copied,
                    .waited = total.waited,
                    .skew = total.skew});
  }
  return rows;
}

Bytes Ledger::logical_bytes() const {
  Bytes sum = 0;
  for (const Total& total : totals_) sum += total.logical;
  return sum;
}

void Ledger::reset() {
  std::fill(totals_.begin(), totals_.end(), Total{});
  first_entry_ += static_cast<std::int64_t>(entries_.size());
  entries_.clear();
}

const LedgerRow* find_row(std::span<const LedgerRow> rows, const LedgerRow& like) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const LedgerRow& row) {
    return row.group == like.group && row.purpose == like.purpose && row.kind == like.kind;
  });
  return found == rows.end() ? nullptr : &*found;
}

void add_rows(std::vector<LedgerRow>& total, std::span<const LedgerRow> rows, std::int64_t times) {
  if (times == 0) return;
  for (const LedgerRow& row : rows) {
    const LedgerRow* known = find_row(total, row);
    if (known == nullptr) total.push_back({.group = row.group, .purpose = row.purpose, .kind = row.kind});
    LedgerRow& sum = known == nullptr ? total.back() : total[known - total.data()];
    sum.count += times * row.count;
    sum.logical += times * row.logical;
    sum.copied += times * row.copied;
    sum.waited += static_cast<double>(times) * row.waited;
    sum.skew += static_cast<double>(times) * row.skew;
  }
}

}  // namespace octavo
