// The emulated link: how long transfers take and what of it a rank sees. That results and failures are the inner
// world's is the contract's matter (contract_backends.cpp).
#include "octavo/comm/emulated_world.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/contract.h"
#include "octavo/base/error.h"
#include "octavo/comm/record/record_world.h"
#include "octavo/comm/run_ranks.h"

using namespace octavo;

namespace {

constexpr Purpose kPurpose = Purpose::Gradients;
constexpr std::int64_t kElements = 25'000;  // 100 kB in float32
// Two ranks send half of an all-gather each and all of an all-reduce: 100 kB take 10 ms.
const LinkSpec kLink{.bytes_per_second = 1e7, .latency = 2e-3};
constexpr Seconds kTransfer = 10e-3;
// Ranks may share one core with other programs; what must not happen is that a wait returns early or transfers add up.
constexpr Seconds kLate = 6e-3;

void on_two_ranks(const std::function<void(World&)>& body, const LinkSpec& link = kLink) {
  run_ranks({.num_ranks = 2}, [&](World& inner) {
    const auto world = make_emulated_world(inner, link);
    everyone(*world)->barrier();
    world->ledger().reset();
    world->ledger().keep_entries(true);
    body(*world);
  });
}

Seconds seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now() - begin).count();
}

void sleep(Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<Seconds>(time));
}

void expect_about(Seconds got, Seconds wanted, const std::string& what) {
  expect(got > wanted - 1e-3 && got < wanted + kLate, what + ": " + std::to_string(got) + " s");
}

}  // namespace

TEST_CASE("a transfer takes its bytes over the bandwidth and the latency of its steps") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({kElements});
    const auto begin = std::chrono::steady_clock::now();
    const TransferTimes times = group->all_reduce(x, kPurpose).wait();
    const Seconds taken = seconds_since(begin);
    expect_about(times.done - times.matched, kTransfer + 2 * kLink.latency, "done after the match");
    expect(taken >= kTransfer + 2 * kLink.latency - 1e-4, "wait returned early");
    expect(at::equal(x, at::full({kElements}, 2.0)), "the sum");
    expect(world.ledger().entries()[0].times.done == times.done, "the ledger's time");
    expect_about(busy_seconds(kLink, world.ledger()), kTransfer, "busy");
  });
}

TEST_CASE("transfers in flight at once share the queue, whatever communicator they are on") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world), other = everyone(world);
    at::Tensor x = at::ones({kElements}), y = x.clone(), z = x.clone();
    std::vector<Pending> pending;
    pending.push_back(group->all_reduce(x, kPurpose));
    pending.push_back(other->all_reduce(y, kPurpose));
    pending.push_back(group->all_reduce(z, kPurpose));
    const Seconds first = pending[0].wait().done;
    const Seconds last = pending[2].wait().done;
    const Seconds second = pending[1].wait().done;
    expect_about(second - first, kTransfer, "the second behind the first");
    expect_about(last - second, kTransfer, "the third behind the second");
    expect_about(busy_seconds(kLink, world.ledger()), 3 * kTransfer, "busy");
  });
}

TEST_CASE("a transfer behind work of its rank exposes nothing, and only the rest of one that is longer") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({kElements}), y = x.clone();
    Pending hidden = group->all_reduce(x, kPurpose);
    sleep(kTransfer + 2 * kLink.latency + kLate);
    hidden.wait();
    expect(world.ledger().rows()[0].waited - world.ledger().rows()[0].skew < 1e-3, "exposed though hidden");
    Pending half = group->all_reduce(y, kPurpose);
    sleep(kTransfer / 2);
    const TransferTimes times = half.wait();
    expect(times.waited < kTransfer / 2 + 2 * kLink.latency + 1e-3, "exposed more than the rest");
  });
}

TEST_CASE("a rank that waits for its peer books that as skew, and the link's time as exposed") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({kElements});
    if (world.rank() == 1) sleep(20e-3);
    group->all_reduce(x, kPurpose).wait();
    const LedgerRow row = world.ledger().rows()[0];
    if (world.rank() == 0) expect_about(row.skew, 20e-3, "skew");
    expect_about(row.waited - row.skew, kTransfer + 2 * kLink.latency, "exposed");
  });
}

TEST_CASE("a wait ends when the link lets go, not later") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({10});
    Seconds least = 1;  // of how much later: another program may have the core now and then
    for (int round = 0; round < 20; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      const Seconds done = group->all_reduce(x, kPurpose).wait().done;
      least = std::min(least, seconds_since(begin) - (done - world.ledger().entries().back().transfer.posted));
    }
    expect(least < 50e-6, "late by " + std::to_string(least) + " s");
  });
}

TEST_CASE("a message received takes its time on a free link, a barrier its latency") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({kElements});
    if (world.rank() == 0) group->send(x, 1, kPurpose).wait();
    if (world.rank() == 1) {
      const TransferTimes times = group->recv(x, 0, kPurpose).wait();
      expect_about(times.done - times.matched, kTransfer + kLink.latency, "received");
      expect(busy_seconds(kLink, world.ledger()) == 0, "a receiver's queue is not busy");
    }
    world.ledger().reset();
    group->barrier();
    const TransferTimes barrier = world.ledger().entries()[0].times;
    expect_about(barrier.done - barrier.matched, kLink.latency, "barrier");
  });
}

TEST_CASE("a transfer that is dropped is waited for and leaves the queue") {
  on_two_ranks([](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({kElements});
    const auto begin = std::chrono::steady_clock::now();
    { Pending dropped = group->all_reduce(x, kPurpose); }
    expect(seconds_since(begin) >= kTransfer, "a dropped transfer must be waited for");
    const TransferTimes next = group->all_reduce(x, kPurpose).wait();
    expect_about(next.done - next.matched, kTransfer + 2 * kLink.latency, "the next");
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
