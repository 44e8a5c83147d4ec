// What a rank has moved: every transfer, booked under the group it ran over, its purpose and its kind. The planner
// predicts a ledger, the engine measures one, tests compare them row by row.
//
// Totals are always kept and cost a few additions per transfer; single entries are kept on request. A ledger belongs to
// one rank's thread. Logical bytes are those of trace/cost.h; copied bytes are those that this rank really
// copied or sent, zero where it read a peer's memory in place. Groups of one rank move nothing and are not booked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/trace/collective.h"
#include "octavo/trace/purpose.h"

namespace octavo {

/// A transfer when it is posted.
struct Transfer {
  int group;  // from Ledger::add_group()
  Purpose purpose;
  Collective kind;
  Bytes logical;            // mean over the ranks of the group
  Bytes copied;             // by this rank
  std::optional<int> peer;  // index in the group of a root, or of the other end of a send or recv
  Seconds posted;           // on the world's clock, which the ranks share
};

/// Times of a transfer that are known when it is over.
struct TransferTimes {
  Seconds matched = 0;  // latest posting among the ranks; zero while it is not known (World::exchange_times)
  Seconds done = 0;     // complete on this rank
  Seconds waited = 0;   // this rank was blocked in wait(); zero if the transfer was done by then
};

struct LedgerEntry {
  Transfer transfer;
  TransferTimes times;  // all zero until the transfer is finished
};

struct LedgerRow {
  std::string group;  // the axes, as "data"
  Purpose purpose;
  Collective kind;
  std::int64_t count = 0;  // transfers posted
  Bytes logical = 0;
  Bytes copied = 0;
  Seconds waited = 0;  // blocked in wait()
  Seconds skew = 0;    // the part of `waited` before the last rank had posted; the rest is exposed communication
};

class Ledger {
 public:
  /// Names a booked transfer, so that its times can follow. Stays valid across reset().
  struct Ticket {
    int row;
    std::int64_t entry;  // number since the ledger was made
  };

  /// The number of the group with that name, new or known.
  int add_group(const std::string& name);
  const std::string& group_name(int group) const { return groups_[group]; }

  Ticket post(const Transfer& transfer);
  /// The times of a transfer that was posted; they count for the current step even if it was posted before reset().
  void finish(Ticket ticket, const TransferTimes& times);
  /// Books the skew of a transfer that was finished before its match was known: `times` as given to finish(), with
  /// `matched` filled in. Counts for the current step.
  void match(Ticket ticket, const TransferTimes& times);

  /// Whether single entries are kept until reset(). Off at first: without resets they would grow for ever.
  void keep_entries(bool keep) { keep_entries_ = keep; }
  /// In the order of posting.
  std::span<const LedgerEntry> entries() const { return entries_; }

  /// Totals since the last reset(), only rows with a transfer or waiting: by group in order of add_group(), purpose,
  /// kind.
  std::vector<LedgerRow> rows() const;
  /// Over all groups since the last reset().
  Bytes logical_bytes() const;

  /// Begins a new step: clears totals and entries, keeps groups and tickets.
  void reset();

 private:
  struct Total {
    std::int64_t count = 0;
    Bytes logical = 0;
    Bytes copied = 0;
    Seconds waited = 0;
    Seconds skew = 0;
  };

  std::vector<std::string> groups_;
  std::vector<Total> totals_;  // [group][purpose][kind], flat
  std::vector<LedgerEntry> entries_;
  std::int64_t first_entry_ = 0;  // number of entries_[0]
  bool keep_entries_ = false;
};

/// The row of `rows` with like's group, purpose and kind; null if there is none.
const LedgerRow* find_row(std::span<const LedgerRow> rows, const LedgerRow& like);

/// Adds `rows`, `times` over, to `total`, row by row: ranks add up, and a run is so many steps and so many evaluations.
void add_rows(std::vector<LedgerRow>& total, std::span<const LedgerRow> rows, std::int64_t times = 1);

/// Where the transfers booked are not those predicted, one line per group, purpose and kind whose count or logical
/// bytes differ, with both; empty if they agree. Copied bytes and times are not predicted.
std::vector<std::string> traffic_differences(std::span<const LedgerRow> predicted, std::span<const LedgerRow> booked);

/// The rows as a table for people, one line each: axes, purpose, kind, count, logical and copied bytes, and waiting,
/// split into skew (waiting for other ranks to post) and what of the transfer itself was exposed; no such columns if
/// nobody waited, as in a dry run. With a prediction its bytes stand beside the logical ones, and rows that were
/// predicted and not booked come last.
std::string ledger_table(std::span<const LedgerRow> rows);
std::string ledger_table(std::span<const LedgerRow> rows, std::span<const LedgerRow> predicted);

}  // namespace octavo
