// One operation in flight on one rank, and the steps that bring it forward.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/threads/lane.h"
#include "comm/threads/shared_group.h"
#include "comm/threads/shared_world.h"
#include "octavo/trace/ledger.h"

namespace octavo {

struct Operation {
  SharedGroup* group = nullptr;
  Lane* lane = nullptr;
  int member = 0;            // this rank's index in the group
  int participant = 0;       // this rank's place in the lane
  std::uint64_t number = 0;  // in the lane, from 1
  std::optional<std::int64_t> step;
  RawCall call;
  std::shared_ptr<Loan> loan;  // of the owner of lent memory; shared with the lane and the readers
  HeldLoan held;               // by a reader, from the match until its wait
  Stage stage = Stage::Queued;
  bool complete = false;  // no peer touches this rank's memory for it any more, and the result is there
  bool booked = false;
  Ledger::Ticket ticket{};
  Seconds posted = 0;   // all times on the world's clock
  Seconds matched = 0;  // latest posting among the participants
  Seconds done = 0;
  std::vector<const std::byte*> sources;  // scratch of sums
};

/// Does whatever can be done now without waiting. Returns whether anything was done. A mismatch poisons the group.
bool advance(Operation& operation, SharedWorld& world);

/// The ranks (in the world) that `operation` waits for now.
std::vector<int> missing_ranks(const Operation& operation);

/// "all_reduce #5 over data", "send #2 over pipeline to rank 3", with " at step 12" if steps are counted.
std::string operation_name(const Operation& operation);

}  // namespace octavo
