#include "comm/c10d/gloo_group.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "comm/threads/call_text.h"
#include "comm/threads/direct_transfer.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::size_t kMostRecords = 1 << 16;  // of a lane whose times nobody exchanges

int index_in(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

bool has_messages(const ExchangePlan& plan) {
  return std::any_of(plan.phases.begin(), plan.phases.end(),
                     [](const Phase& phase) { return !phase.sends.empty() || !phase.receives.empty(); });
}

}  // namespace

GlooGroup::GlooGroup(GlooRank& rank, const RankGroup& group, std::string prefix)
    : rank_(rank),
      name_(group.name),
      ranks_(group.ranks),
      prefix_(std::move(prefix)),
      index_(index_in(group.ranks, rank.rank())) {
  if (size() == 1) return;
  ledger_group_ = rank.ledger().add_group(name_);
  try {
    links_ = std::make_unique<PeerLinks>(
        rank.device(),
        LinkOptions{
            .store = rank.meeting(), .prefix = prefix_, .index = index_, .size = size(), .deadline = rank.deadline()});
  } catch (const LinkFailure& error) {
    throw CommError(cat("[comm] rank ", rank_.rank(), ": the ", size(), " ranks of group ", name_,
                        " did not connect within ", fixed(std::chrono::duration<double>(rank.deadline()).count(), 1),
                        " s: ", error.what(), ". Another rank may have failed, or a firewall is between them."));
  }
}

GlooGroup::~GlooGroup() = default;

GlooGroup::LaneKey GlooGroup::lane_key(const RawCall& call) {
  return is_point_to_point(call.kind) ? LaneKey(call.kind, call.peer) : LaneKey(Collective::Barrier, 0);
}

GlooLane& GlooGroup::lane(const RawCall& call) {
  std::unique_ptr<GlooLane>& lane = lanes_[lane_key(call)];
  if (!lane) lane = std::make_unique<GlooLane>([this](GlooOperation& operation) { return carry_out(operation); });
  return *lane;
}

GlooGroup::Ticket GlooGroup::post(const RawCall& call, ExchangePlan plan, std::byte* scratch) {
  return start(call, std::move(plan), scratch, /*booked=*/size() > 1);
}

GlooGroup::Ticket GlooGroup::start(const RawCall& call, ExchangePlan plan, std::byte* scratch, bool booked) {
  const auto operation = std::make_shared<GlooOperation>();
  operation->call = call;
  operation->plan = std::move(plan);
  operation->scratch = scratch;
  operation->step = rank_.recorder().step();
  GlooLane* meeting = size() > 1 ? &lane(call) : nullptr;
  if (meeting != nullptr) operation->number = meeting->num_posted + 1;
  if (poison_.is_set()) throw_failure(*operation);
  if (meeting != nullptr) ++meeting->num_posted;
  if (call.kind == Collective::Barrier) {
    operation->tokens.resize(operation->plan.scratch_elements);
    operation->scratch = operation->tokens.data();
  }
  if (booked) book(*operation);
  const bool alone = size() == 1 || (!has_messages(operation->plan) && !rank_.check_calls());
  if (alone) {
    operation->complete = operation->settled = carry_out(*operation);
    return {.lane = nullptr, .operation = operation, .exceptions_at_post = 0};
  }
  if (!rank_.check_calls()) start_messages(*operation);
  meeting->push(operation);
  return {.lane = meeting, .operation = operation, .exceptions_at_post = std::uncaught_exceptions()};
}

void GlooGroup::book(GlooOperation& operation) {
  const RawCall& call = operation.call;
  Transfer transfer = direct_transfer(call, index_, size());
  transfer.group = ledger_group_;
  transfer.copied = sent_bytes(operation.plan, call);
  transfer.posted = rank_.clock().now();
  operation.record = std::make_shared<TransferRecord>();
  operation.record->ticket = rank_.ledger().post(transfer);
  operation.record->posted = transfer.posted;
  auto& log = log_[lane_key(call)];
  if (log.size() == kMostRecords) log.clear();  // on all members at the same operation
  log.push_back(operation.record);
}

TransferTimes GlooGroup::wait(const Ticket& ticket) {
  GlooOperation& operation = *ticket.operation;
  const Seconds begin = rank_.clock().now();
  if (ticket.lane == nullptr) return book_times(operation, 0);
  const bool at_once = ticket.lane->await_settled(operation, std::chrono::nanoseconds(0));
  if (!at_once) wait_until_settled(ticket, begin);
  if (!ticket.lane->is_complete(operation)) throw_failure(operation);
  return book_times(operation, at_once ? 0 : operation.done - begin);
}

bool GlooGroup::abandon(const Ticket& ticket) noexcept {
  try {
    const bool unwinding = std::uncaught_exceptions() > ticket.exceptions_at_post;
    if (unwinding && ticket.lane != nullptr &&
        !ticket.lane->await_settled(*ticket.operation, std::chrono::seconds(0))) {
      fail({.rank = rank_.rank(), .kind = FailureKind::RankLost, .text = ""});
      while (!ticket.lane->await_settled(*ticket.operation, std::chrono::seconds(1))) {
      }
      return false;
    }
    wait(ticket);
    return true;
  } catch (...) {
    return false;  // the group stays failed; its next call throws
  }
}

TransferTimes GlooGroup::book_times(GlooOperation& operation, Seconds waited) {
  if (!operation.record) return {};
  TransferRecord& record = *operation.record;
  const Seconds done = operation.done;
  record.times = TransferTimes{.matched = record.matched, .done = done, .waited = std::max(0.0, waited)};
  rank_.ledger().finish(record.ticket, *record.times);
  return *record.times;
}

void GlooGroup::wait_until_settled(const Ticket& ticket, Seconds begin) {
  using std::chrono::milliseconds;
  const milliseconds slice = std::min(milliseconds(250), std::max(milliseconds(1), rank_.deadline() / 4));
  const Seconds deadline = std::chrono::duration<Seconds>(rank_.deadline()).count();
  std::optional<int> suspect;
  while (!ticket.lane->await_settled(*ticket.operation, slice)) {
    if (poison_.is_set()) continue;  // the helper is about to let go
    if (rank_.clock().now() - begin >= deadline) {
      give_up(ticket, begin);
    } else {
      check_peer_ended(ticket, suspect);
    }
  }
}

/// A peer whose body has ended posts nothing more. What it sent last may be on its way: look twice.
void GlooGroup::check_peer_ended(const Ticket& ticket, std::optional<int>& suspect) {
  const int peer = ticket.lane->waits_for();
  if (peer >= 0 && links_->has_ended(peer)) {
    // The helper may be told so at this moment; what is known is the same.
    return broken(*ticket.operation, peer, "its connection ended");
  }
  const bool any_ended = peer >= 0 && rank_.board().num_ended().value_or(0) > 0;
  const std::optional<RankEnd> end = any_ended ? rank_.board().end_of(ranks_[peer]) : std::nullopt;
  if (!end) {
    suspect.reset();
  } else if (suspect != peer) {
    suspect = peer;
  } else if (end->failed) {
    fail(end->failure);
  } else {
    fail({.rank = ranks_[peer],
          .kind = FailureKind::RankLost,
          .text = cat("it returned while rank ", rank_.rank(), " was in ", operation_name(*ticket.operation))});
  }
}

/// The deadline has passed: finds out who is late, and says so.
void GlooGroup::give_up(const Ticket& ticket, Seconds begin) {
  const int peer = ticket.lane->waits_for();
  if (peer < 0) return;  // it came this moment
  // Whom this rank waits for may itself wait for somebody, and say so about now.
  std::vector<int> chain = {index_, peer};
  links_->blame(peer);
  const auto patience = std::min(std::chrono::milliseconds(500), rank_.deadline() / 4);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    const std::optional<int> next = links_->blamed_by(chain.back());
    if (next && std::find(chain.begin(), chain.end(), *next) != chain.end()) break;
    if (next) {
      chain.push_back(*next);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const Seconds waited = rank_.clock().now() - begin;
  fail({.rank = rank_.rank(),
        .kind = FailureKind::RankLost,
        .text = cat(operation_name(*ticket.operation), " waited ", fixed(waited, 1), " s for rank ",
                    ranks_[chain.back()])});
}

void GlooGroup::fail(const Failure& failure) {
  if (!poison_.is_set()) poison_.set(rank_.rank(), rank_.board().report(prefix_, failure));
  if (links_) links_->close(to_note(poison_.failure()));
}

void GlooGroup::throw_failure(const GlooOperation& operation) {
  Failure failure = poison_.failure();
  if (failure.text.empty() && failure.rank != rank_.rank()) {
    // A rank that is unwinding says what happened as soon as it is out; it may also catch its own exception and never
    // say.
    constexpr int kTries = 40;
    for (int attempt = 0; attempt < kTries && failure.text.empty(); ++attempt) {
      const std::optional<RankEnd> end = rank_.board().end_of(failure.rank);
      if (end && end->failed) failure = end->failure;
      if (failure.text.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  if (failure.kind == FailureKind::Mismatch) throw UsageError(failure.text);
  if (failure.rank == rank_.rank()) {
    const std::string text = failure.text.empty() ? "this rank left it with an exception" : failure.text;
    throw CommError(cat("[comm] rank ", rank_.rank(), ": ", text, ". Restart from the last checkpoint."));
  }
  const std::string reason = failure.text.empty() ? "an exception" : failure.text;
  throw PeerFailure(cat("[comm] rank ", rank_.rank(), ": ", operation_name(operation), " ended because rank ",
                        failure.rank, " failed: ", reason, ". Restart from the last checkpoint."),
                    failure);
}

std::string GlooGroup::operation_name(const GlooOperation& operation) const {
  return call_name({.call = operation.call,
                    .number = operation.number,
                    .group = name_,
                    .peer = ranks_[operation.call.peer],
                    .step = operation.step});
}

}  // namespace octavo
