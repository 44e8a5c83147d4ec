// The emulated link: how long transfers take and what of it a rank sees. That results and failures are the inner
// world's is the contract's matter (contract_backends.cpp), the queue's arithmetic that of link_queue_test.cpp.
//
// A transfer may never be faster than the link. It may be slower where other programs keep a rank from its core, so how
// fast it is shows in the best of several rounds.
#include "octavo/comm/emulated_world.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "comm/contract.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/record/record_world.h"
#include "octavo/comm/run_ranks.h"
#include "octavo/comm/without_memory.h"

using namespace octavo;

namespace {

constexpr Purpose kPurpose = Purpose::Gradients;
constexpr std::int64_t kElements = 25'000;  // 100 kB in float32
// Two ranks send half of an all-gather each and all of an all-reduce: 100 kB take 10 ms.
const LinkSpec kLink{.bytes_per_second = 1e7, .latency = 2e-3};
constexpr Seconds kTransfer = 10e-3;
constexpr Seconds kAllReduce = kTransfer + 2 * 2e-3;  // two steps
constexpr Seconds kLate = 3e-3;                       // of the best round
constexpr Seconds kRounding = 1e-9;

void on_two_ranks(const std::function<void(World&)>& body) {
  run_ranks({.num_ranks = 2}, [&](World& inner) {
    const auto world = make_emulated_world(inner, kLink);
    world->ledger().keep_entries(true);
    body(*world);
  });
}

/// The least of what `round` returns in several rounds, each from a fresh start of all ranks.
Seconds least(World& world, const std::function<Seconds()>& round) {
  constexpr int kRounds = 15;
  const auto group = everyone(world);
  Seconds best = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    group->barrier();
    world.ledger().reset();
    best = std::min(best, round());
  }
  return best;
}

/// That the link's time was kept, and nearly so in the best round.
void expect_about(Seconds got, Seconds wanted, const std::string& what) {
  expect(got > wanted - kRounding && got < wanted + kLate, cat(what, ": ", got, " s, wanted ", wanted));
}

Seconds seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now() - begin).count();
}

void sleep(Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<Seconds>(time));
}

}  // namespace

TEST_CASE("a transfer takes its bytes over the bandwidth and the latency of its steps") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    const Seconds best = least(world, [&] {
      at::Tensor x = at::ones({kElements});
      const auto begin = std::chrono::steady_clock::now();
      const TransferTimes times = group->all_reduce(x, kPurpose).wait();
      expect(seconds_since(begin) >= kAllReduce - 1e-4, "wait() returned early");
      expect(at::equal(x, at::full({kElements}, 2.0)), "the sum");
      expect(world.ledger().entries()[0].times.done == times.done, "the ledger's time");
      expect(std::abs(busy_seconds(kLink, world.ledger()) - kTransfer) < kRounding, "busy");
      return times.done - times.matched;
    });
    expect_about(best, kAllReduce, "done after the match");
  });
}

TEST_CASE("transfers in flight at once share the queue, whatever communicator they are on") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world), other = everyone(world);
    const Seconds best = least(world, [&] {
      at::Tensor x = at::ones({kElements}), y = x.clone(), z = x.clone();
      std::vector<Pending> pending;
      pending.push_back(group->all_reduce(x, kPurpose));
      pending.push_back(other->all_reduce(y, kPurpose));
      pending.push_back(group->all_reduce(z, kPurpose));
      const TransferTimes first = pending[0].wait(), last = pending[2].wait(), second = pending[1].wait();
      expect(second.done > first.matched + kTransfer + kAllReduce - kRounding, "the second overtook the first");
      expect(std::abs(busy_seconds(kLink, world.ledger()) - 3 * kTransfer) < kRounding, "busy");
      return last.done - first.matched;
    });
    expect_about(best, 2 * kTransfer + kAllReduce, "the third behind the others");
  });
}

TEST_CASE("a transfer behind work of its rank exposes nothing, and only the rest of one that is longer") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    const auto exposed_behind = [&](Seconds work) {
      return least(world, [&] {
        at::Tensor x = at::ones({kElements});
        Pending pending = group->all_reduce(x, kPurpose);
        sleep(work);
        pending.wait();
        const LedgerRow row = world.ledger().rows()[0];
        return row.waited - row.skew;
      });
    };
    expect(exposed_behind(kAllReduce + 2e-3) < kLate, "exposed though hidden");
    const Seconds rest = exposed_behind(kAllReduce / 2);
    expect(rest < kAllReduce / 2 + kLate, cat("exposed ", rest, " s, more than the rest"));
  });
}

TEST_CASE("a rank that waits for its peer books that as skew, and the link's time as exposed") {
  constexpr Seconds kLateRank = 20e-3;
  on_two_ranks([&](World& world) {
    const auto group = everyone(world);
    Seconds most_skew = 0;
    const Seconds exposed = least(world, [&] {
      at::Tensor x = at::ones({kElements});
      if (world.rank() == 1) sleep(kLateRank);
      group->all_reduce(x, kPurpose).wait();
      const LedgerRow row = world.ledger().rows()[0];
      most_skew = std::max(most_skew, row.skew);
      return row.waited - row.skew;
    });
    // The wait begins a little after the match on the rank that comes last.
    expect(std::abs(exposed - kAllReduce) < kLate, cat("exposed ", exposed));
    if (world.rank() == 0) expect(most_skew > kLateRank / 2, cat("skew ", most_skew));
  });
}

TEST_CASE("a message received takes its time on a free link, a barrier its latency") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    const Seconds message = least(world, [&] {
      at::Tensor x = at::ones({kElements});
      const bool sends = world.rank() == 0;
      const TransferTimes times = (sends ? group->send(x, 1, kPurpose) : group->recv(x, 0, kPurpose)).wait();
      expect(std::abs(busy_seconds(kLink, world.ledger()) - (sends ? kTransfer : 0)) < kRounding, "busy");
      return times.done - times.matched;
    });
    expect_about(message, kTransfer + kLink.latency, "message");
    const Seconds barrier = least(world, [&] {
      group->barrier();
      const TransferTimes times = world.ledger().entries()[0].times;
      return times.done - times.matched;
    });
    expect_about(barrier, kLink.latency, "barrier");
  });
}

TEST_CASE("what is lent takes the time of a copy, though none is made") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    const at::Tensor x = at::ones({kElements});
    const bool owns = world.rank() == 0;
    const auto time_of = [&](const std::function<Pending(const at::Tensor&)>& post) {
      return least(world, [&] {
        const TransferTimes times = post(owns ? x : without_memory({kElements}, at::kFloat)).wait();
        expect(world.ledger().entries()[0].transfer.copied == 0, "nothing is copied");
        return times.done - times.matched;
      });
    };
    const Seconds shared = time_of([&](const at::Tensor& mine) { return group->share(mine, 0, kPurpose); });
    expect_about(shared, kTransfer / 2 + kLink.latency, "share");  // of two ranks one sends
    const Seconds lent = time_of([&](const at::Tensor& mine) {
      return owns ? group->lend(mine, 1, kPurpose) : group->borrow(mine, 0, kPurpose);
    });
    expect_about(lent, kTransfer + kLink.latency, "lend");
  });
}

TEST_CASE("a transfer that is dropped is waited for and leaves the queue") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    const Seconds next = least(world, [&] {
      at::Tensor x = at::ones({kElements});
      const auto begin = std::chrono::steady_clock::now();
      { Pending dropped = group->all_reduce(x, kPurpose); }
      expect(seconds_since(begin) >= kAllReduce - 1e-4, "a dropped transfer must be waited for");
      const TransferTimes times = group->all_reduce(x, kPurpose).wait();
      return times.done - times.matched;
    });
    expect_about(next, kAllReduce, "the next");
  });
}

TEST_CASE("a wait ends when the link lets go, not later") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({10});
    const Seconds late = least(world, [&] {
      const auto begin = std::chrono::steady_clock::now();
      const Seconds done = group->all_reduce(x, kPurpose).wait().done;
      return seconds_since(begin) - (done - world.ledger().entries()[0].transfer.posted);
    });
    expect(late < 50e-6, cat("late by ", late, " s"));
  });
}

TEST_CASE("a link that does not exist is refused, and so is a world without a clock") {
  const auto record = make_record_world(0, 2);
  CHECK_THROWS_AS(make_emulated_world(*record, kLink), UsageError);
  run_ranks({.num_ranks = 1}, [](World& inner) {
    CHECK_THROWS_AS(make_emulated_world(inner, {.bytes_per_second = 0, .latency = 0}), UsageError);
    CHECK_THROWS_AS(make_emulated_world(inner, {.bytes_per_second = 1, .latency = -1}), UsageError);
  });
}
