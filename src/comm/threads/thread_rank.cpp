#include "comm/threads/thread_rank.h"

#include <algorithm>
#include <thread>

#include "comm/threads/backoff.h"
#include "comm/threads/thread_group.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(cat(rank));
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(texts, ", "));
}

}  // namespace

std::unique_ptr<ThreadGroup> ThreadRank::split(const RankGroup& group) {
  SharedGroup& shared = world_.join(rank_, num_splits_++, group);
  const auto here = std::find(group.ranks.begin(), group.ranks.end(), rank_);
  return std::make_unique<ThreadGroup>(*this, shared, static_cast<int>(here - group.ranks.begin()));
}

Operation& ThreadRank::new_operation() {
  if (free_.empty()) {
    memory_.push_back(std::make_unique<Operation>());
    return *memory_.back();
  }
  Operation& operation = *free_.back();
  free_.pop_back();
  return operation;
}

void ThreadRank::post(Operation& operation) {
  in_flight_.push_back(&operation);
  progress();
}

bool ThreadRank::progress() {
  bool moved = false;
  for (Operation* operation : in_flight_) moved |= advance(*operation, world_);
  if (moved) std::erase_if(in_flight_, [](const Operation* operation) { return operation->complete; });
  return moved;
}

TransferTimes ThreadRank::wait(Operation& operation) {
  if (operation.complete) return book_times(operation, 0);
  const Seconds begin = world_.now();
  try {
    wait_until_complete(operation);
  } catch (...) {
    operation.group->await_quiet();
    throw;
  }
  return book_times(operation, operation.done - begin);
}

void ThreadRank::wait_until_complete(Operation& operation) {
  const Seconds begin = world_.now();
  Backoff backoff;
  while (true) {
    const bool moved = progress();
    if (operation.complete) return;
    if (operation.group->poison().is_set()) throw_failure(operation);
    if (moved) {
      backoff.reset();
    } else if (backoff.pause()) {
      check_departed(operation);
      check_deadline(operation, begin);
    }
  }
}

TransferTimes ThreadRank::book_times(Operation& operation, Seconds waited) {
  const TransferTimes times{.matched = operation.matched, .done = operation.done, .waited = waited};
  if (operation.booked) ledger_.finish(operation.ticket, times);
  operation.booked = false;
  return times;
}

void ThreadRank::check_deadline(const Operation& operation, Seconds begin) {
  const Seconds waited = world_.now() - begin;
  if (waited < world_.deadline()) return;
  const std::vector<int> missing = missing_ranks(operation);
  if (missing.empty()) return;  // they came this moment
  const std::string text = cat(operation_name(operation), " waited ", fixed(waited, 1), " s for ", rank_list(missing));
  operation.group->poison().set(rank_, {.rank = rank_, .kind = FailureKind::RankLost, .text = text});
  if (operation.group->poison().reporter() != rank_) throw_failure(operation);  // somebody else was first
  throw CommError(cat("[comm] rank ", rank_, ": ", text, ". Restart from the last checkpoint."));
}

void ThreadRank::check_departed(const Operation& operation) {
  for (const int rank : missing_ranks(operation)) {
    const RankState state = world_.state(rank);
    if (state == RankState::Running) continue;
    // Its last post may have come between the two looks.
    const std::vector<int> missing = missing_ranks(operation);
    if (std::find(missing.begin(), missing.end(), rank) == missing.end()) continue;
    const Failure failure =
        state == RankState::Failed
            ? world_.failure(rank)
            : Failure{.rank = rank,
                      .kind = FailureKind::RankLost,
                      .text = cat("it returned while rank ", rank_, " was in ", operation_name(operation))};
    operation.group->poison().set(rank_, failure);
    throw_failure(operation);
  }
}

void ThreadRank::throw_failure(const Operation& operation) const {
  const Poison& poison = operation.group->poison();
  // A rank that is unwinding says what happened as soon as it is out; it may also catch its own exception and never
  // say.
  constexpr Seconds kPatience = 2;
  const Seconds begin = world_.now();
  while (poison.failure().text.empty() && poison.reporter() != rank_ &&
         world_.state(poison.reporter()) == RankState::Running && world_.now() - begin < kPatience) {
    std::this_thread::yield();
  }
  const Failure failure = poison.failure();
  if (failure.kind == FailureKind::Mismatch) throw UsageError(failure.text);
  const std::string reason = failure.text.empty() ? "an exception" : failure.text;
  throw PeerFailure(cat("[comm] rank ", rank_, ": ", operation_name(operation), " ended because rank ", failure.rank,
                        " failed: ", reason, ". Restart from the last checkpoint."),
                    failure);
}

void ThreadRank::poison_unwinding(Operation& operation) {
  operation.group->poison().set(rank_, {.rank = rank_, .kind = FailureKind::RankLost, .text = ""});
  operation.group->await_quiet();
}

void ThreadRank::release(Operation& operation) {
  if (operation.loan) operation.loan->end();
  operation.loan = nullptr;
  operation.held = HeldLoan();
  if (!operation.complete) std::erase(in_flight_, &operation);
  free_.push_back(&operation);
}

}  // namespace octavo
