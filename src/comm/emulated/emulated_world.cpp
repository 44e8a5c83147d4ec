#include "octavo/comm/emulated_world.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "comm/checked_communicator.h"
#include "comm/emulated/link_clock.h"
#include "comm/emulated/link_queue.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

/// What the communicators of one rank share.
struct Link {
  LinkSpec spec;
  Ledger& inner_ledger;
  LinkQueue queue{};
  LinkClock clock{};
  Ledger ledger{};
  FlightRecorder recorder{0};  // nobody's: the inner world records
};

/// One transfer on the link.
struct OnLink {
  std::optional<LinkQueue::Number> place;  // in the queue, if it has bytes to send
  Seconds posted;
  Seconds delay;  // after it has left the queue; after the match if it has no place there
  Ledger::Ticket ticket;
};

class EmulatedPending final : public PendingState {
 public:
  EmulatedPending(Link& link, Pending inner, const OnLink& transfer)
      : link_(link), inner_(std::move(inner)), transfer_(transfer), exceptions_at_post_(std::uncaught_exceptions()) {}

  TransferTimes wait() override {
    const Seconds begin = link_.clock.now();
    TransferTimes times;
    try {
      times = inner_.wait();
    } catch (...) {
      settle(transfer_.posted);
      throw;
    }
    times.matched = std::max(times.matched, transfer_.posted);
    times.done = std::max(times.done, settle(times.matched) + transfer_.delay);
    times.waited = std::max(0.0, times.done - begin);
    link_.clock.sleep_until(times.done);
    link_.ledger.finish(transfer_.ticket, times);
    return times;
  }

  bool abandon() noexcept override {
    if (std::uncaught_exceptions() > exceptions_at_post_) {
      settle(transfer_.posted);
      return false;  // inner_'s destructor knows what to do
    }
    try {
      wait();
      return true;
    } catch (...) {
      return false;  // the group stays failed: its next call throws
    }
  }

  bool holds_memory() const override { return inner_.holds_memory(); }

 private:
  Seconds settle(Seconds matched) { return transfer_.place ? link_.queue.settle(*transfer_.place, matched) : matched; }

  Link& link_;
  Pending inner_;
  const OnLink transfer_;
  const int exceptions_at_post_;
};

class EmulatedCommunicator final : public CheckedCommunicator {
 public:
  EmulatedCommunicator(int rank, std::unique_ptr<Communicator> inner, Link& link)
      : CheckedCommunicator(rank, link.recorder, inner->name()), inner_(std::move(inner)), link_(link) {
    if (size() > 1) ledger_group_ = link_.ledger.add_group(name());
  }

  int index() const override { return inner_->index(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  bool shares_memory() const override { return inner_->shares_memory(); }

 protected:
  Pending post(TensorCall call) override {
    if (size() == 1) return forward(call);
    const LinkClock::Moment before = LinkClock::moment();
    Pending inner = forward(call);
    internal_check(!link_.inner_ledger.entries().empty(), "[comm] the emulated link's inner world booked nothing");
    const LedgerEntry booked = link_.inner_ledger.entries().back();
    link_.inner_ledger.reset();
    link_.clock.observe(before, booked.transfer.posted);

    Transfer transfer = booked.transfer;
    transfer.group = ledger_group_;
    const OnLink on_link = put_on_link(call, transfer);
    if (call.kind == Collective::Barrier) {
      finish_barrier(on_link, booked.times);
      return {};
    }
    return Pending(std::make_unique<EmulatedPending>(link_, std::move(inner), on_link));
  }

 private:
  OnLink put_on_link(const TensorCall& call, const Transfer& transfer) {
    const Seconds second_per_byte = 1 / link_.spec.bytes_per_second;
    const int steps = collective_cost(call.kind, Algorithm::Direct, size(), 0).steps;
    OnLink result{.place = std::nullopt,
                  .posted = transfer.posted,
                  .delay = link_.spec.latency * steps,
                  .ticket = link_.ledger.post(transfer)};
    if (call.kind == Collective::Receive) {
      result.delay += static_cast<Seconds>(call.count * wire_bytes(call_element_type(call))) * second_per_byte;
    } else if (transfer.logical > 0) {
      result.place = link_.queue.add(transfer.posted, static_cast<Seconds>(transfer.logical) * second_per_byte);
    }
    return result;
  }

  /// The inner barrier has returned.
  void finish_barrier(const OnLink& on_link, TransferTimes times) {
    times.done = std::max(times.done, times.matched + on_link.delay);
    times.waited = std::max(0.0, times.done - on_link.posted);
    link_.clock.sleep_until(times.done);
    link_.ledger.finish(on_link.ticket, times);
  }

  Pending forward(const TensorCall& call) {
    switch (call.kind) {
      case Collective::AllReduce:
        return inner_->all_reduce(call.out, call.purpose);
      case Collective::ReduceScatter:
        return inner_->reduce_scatter(call.out, call.in, call.purpose);
      case Collective::AllGather:
        return inner_->all_gather(call.out, call.in, call.purpose);
      case Collective::Broadcast:
        return call.lends ? inner_->share(call.out, call.peer, call.purpose)
                          : inner_->broadcast(call.out, call.peer, call.purpose);
      case Collective::Reduce:
        return inner_->reduce(call.out, call.peer, call.purpose);
      case Collective::AllToAll:
        return inner_->all_to_all(call.out, call.in, call.purpose);
      case Collective::Send:
        return call.lends ? inner_->lend(call.in, call.peer, call.purpose)
                          : inner_->send(call.in, call.peer, call.purpose);
      case Collective::Receive:
        return call.lends ? inner_->borrow(call.out, call.peer, call.purpose)
                          : inner_->recv(call.out, call.peer, call.purpose);
      case Collective::Barrier:
        inner_->barrier();
        return {};
    }
    throw InternalError("[comm] emulated link: a kind outside the enum.");
  }

  std::unique_ptr<Communicator> inner_;
  Link& link_;
  int ledger_group_ = 0;
};

class EmulatedWorld final : public World {
 public:
  EmulatedWorld(World& inner, const LinkSpec& spec)
      : inner_(inner), link_{.spec = spec, .inner_ledger = inner.ledger()} {
    inner_.ledger().keep_entries(true);
  }
  ~EmulatedWorld() override { inner_.ledger().keep_entries(false); }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string backend() const override { return cat(inner_.backend(), " behind a link of ", link_.spec.to_string()); }
  bool reads_in_place() const override { return false; }  // a link is between them

  using World::split;
  std::unique_ptr<Communicator> split(const RankGroup& group) override {
    return std::make_unique<EmulatedCommunicator>(rank(), inner_.split(group), link_);
  }

  Ledger& ledger() override { return link_.ledger; }
  FlightRecorder& recorder() override { return inner_.recorder(); }

 private:
  World& inner_;
  Link link_;
};

}  // namespace

std::unique_ptr<World> make_emulated_world(World& inner, const LinkSpec& link) {
  const bool fits = std::isfinite(link.bytes_per_second) && link.bytes_per_second > 0 && std::isfinite(link.latency) &&
                    link.latency >= 0;
  if (!fits) {
    throw UsageError(cat("[comm] make_emulated_world: ", link.bytes_per_second, " B/s, latency ", link.latency,
                         " s; needs a bandwidth above 0 and a latency of at least 0."));
  }
  if (inner.backend() == "record") {
    throw UsageError("[comm] make_emulated_world: the record backend has no clock; use the dry run's bytes instead.");
  }
  return std::make_unique<EmulatedWorld>(inner, link);
}

}  // namespace octavo
