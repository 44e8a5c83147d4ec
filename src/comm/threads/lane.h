// Where the members of a group meet for one operation after another: a ring of cells per participant.
//
// Operation number k (from 1) of participant p lives in cell (p, k mod slots). The participant writes its call there
// and then publishes stages; peers read the call once they see the stage. A cell is written again only when every
// participant is done with the operation that held it, so a call in a cell is stable while anyone may read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/threads/loan.h"
#include "comm/threads/wire_type.h"
#include "octavo/base/units.h"
#include "octavo/trace/collective.h"
#include "octavo/trace/purpose.h"

namespace octavo {

/// One rank's side of an operation, in raw memory. `count` is in elements: of x; for reduce_scatter, all_gather and
/// all_to_all of one rank's part. In place where the operation is: in == out. A broadcast, send or recv may lend: then
/// a reader has no memory of its own (null) and gets the owner's as a loan.
struct RawCall {
  Collective kind = Collective::Barrier;
  Purpose purpose = Purpose::Control;
  WireType type = WireType::F32;
  int peer = 0;  // index in the group: the root, or the other end of a send or recv
  std::int64_t count = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  bool lends = false;
};

/// How far a participant is with an operation. Ordered.
enum class Stage : std::uint64_t {
  Queued = 0,   // not visible to peers yet
  Posted = 1,   // its call can be read
  Reduced = 2,  // its part of an all-reduce is summed
  Done = 3,     // it will not touch a peer's memory for this operation any more; but for a loan that it holds
};

class Lane {
 public:
  explicit Lane(int num_participants) : cells_(num_participants * kSlots), num_participants_(num_participants) {}

  int size() const { return num_participants_; }

  const RawCall& call(int participant, std::uint64_t number) const { return cell(participant, number).call; }
  /// What that participant lends with that operation; null if nothing.
  const std::shared_ptr<Loan>& loan(int participant, std::uint64_t number) const {
    return cell(participant, number).loan;
  }
  Seconds posted(int participant, std::uint64_t number) const { return cell(participant, number).posted; }

  /// Writes the call and makes it visible. Only when reusable(number).
  void publish(int participant, std::uint64_t number, const RawCall& call, const std::shared_ptr<Loan>& loan,
               Seconds time) {
    Cell& mine = cell(participant, number);
    mine.call = call;
    mine.loan = loan;
    mine.posted = time;
    set_stage(participant, number, Stage::Posted);
  }
  void set_stage(int participant, std::uint64_t number, Stage stage) {
    cell(participant, number).progress.store(mark(number, stage), std::memory_order_release);
  }

  bool reached(int participant, std::uint64_t number, Stage stage) const {
    return cell(participant, number).progress.load(std::memory_order_acquire) >= mark(number, stage);
  }
  bool all_reached(std::uint64_t number, Stage stage) const {
    for (int participant = 0; participant < num_participants_; ++participant) {
      if (!reached(participant, number, stage)) return false;
    }
    return true;
  }

  /// The operation whose cells `number` will take over; 0 if they are fresh.
  static std::uint64_t previous_user(std::uint64_t number) { return number > kSlots ? number - kSlots : 0; }
  /// Whether everybody is done with the previous user of the cells.
  bool reusable(std::uint64_t number) const {
    const std::uint64_t previous = previous_user(number);
    return previous == 0 || all_reached(previous, Stage::Done);
  }

 private:
  static constexpr std::uint64_t kSlots =
      16;  // operations of one lane in flight; later ones wait in their rank's queue

  struct alignas(64) Cell {
    std::atomic<std::uint64_t> progress{0};  // only grows
    RawCall call;
    std::shared_ptr<Loan> loan;
    Seconds posted = 0;
  };

  static std::uint64_t mark(std::uint64_t number, Stage stage) {
    return number * 4 + static_cast<std::uint64_t>(stage);
  }
  const Cell& cell(int participant, std::uint64_t number) const {
    return cells_[participant * kSlots + number % kSlots];
  }
  Cell& cell(int participant, std::uint64_t number) { return cells_[participant * kSlots + number % kSlots]; }

  std::vector<Cell> cells_;
  int num_participants_;
};

}  // namespace octavo
