#include "comm/c10d/exchange_plan.h"

#include <doctest/doctest.h>

#include <vector>

#include "comm/c10d/world_clock.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

RawCall call_of(Collective kind, std::int64_t count, int peer) {
  return {.kind = kind, .purpose = Purpose::Control, .type = WireType::F32, .peer = peer, .count = count};
}

/// Sizes of the messages that go from or to `peer`, in order.
std::vector<std::int64_t> sizes(const ExchangePlan& plan, int peer, bool sends) {
  std::vector<std::int64_t> result;
  for (const Phase& phase : plan.phases) {
    for (const Message& message : sends ? phase.sends : phase.receives) {
      if (message.peer == peer) result.push_back(message.span.count);
    }
  }
  return result;
}

const std::vector<std::int64_t> kCounts = {0, 1, 31, 33, 1000, 1024, 1025, 16'384, 16'385, 100'000};

TEST_CASE("what a rank sends is what its peer receives, message by message, for every collective, size and root") {
  for (const Collective kind : kAllCollectives) {
    if (kind == Collective::Send || kind == Collective::Receive) continue;
    for (int num_ranks = 1; num_ranks <= 9; ++num_ranks) {
      for (const std::int64_t count : kCounts) {
        const RawCall call = call_of(kind, count, num_ranks - 1);
        for (int from = 0; from < num_ranks; ++from) {
          for (int to = 0; to < num_ranks; ++to) {
            const auto sent = sizes(exchange_plan(call, from, num_ranks), to, true);
            const auto received = sizes(exchange_plan(call, to, num_ranks), from, false);
            CHECK(sent == received);
            if (from == to) CHECK(sent.empty());
          }
        }
      }
    }
  }
}

TEST_CASE("on the mean over ranks, large messages cost what the formulas say, and no rank sends more than twice that") {
  constexpr std::int64_t kCount = 64 * 5040;  // divides evenly
  for (const Collective kind :
       {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather, Collective::AllToAll}) {
    for (int num_ranks = 2; num_ranks <= 9; ++num_ranks) {
      const bool whole = kind == Collective::AllReduce;
      const RawCall call = call_of(kind, whole ? kCount : kCount / num_ranks, 0);
      Bytes total = 0;
      for (int rank = 0; rank < num_ranks; ++rank) total += sent_bytes(exchange_plan(call, rank, num_ranks), call);
      const double mean = static_cast<double>(total) / num_ranks;
      const auto formula = static_cast<double>(
          collective_cost(kind, Algorithm::Direct, num_ranks, call.count * (whole ? 1 : num_ranks) * 4).sent);
      CHECK(mean == doctest::Approx(formula).epsilon(1e-3));
    }
  }
}

TEST_CASE("a rank of a group of one sends nothing and needs no memory") {
  for (const Collective kind :
       {Collective::AllReduce, Collective::Broadcast, Collective::Reduce, Collective::Barrier}) {
    const ExchangePlan plan = exchange_plan(call_of(kind, 100'000, 0), 0, 1);
    CHECK(plan.sent_elements == 0);
    CHECK(plan.scratch_elements == 0);
  }
}

TEST_CASE("a clock's offset is that of the probe with the shortest way") {
  // Rank 0's clock is 100 s ahead; answers take 1 ms each way, or much longer one way.
  const std::vector<ClockProbe> probes = {{.sent = 5.0, .answered = 105.5, .received = 5.501},
                                          {.sent = 6.0, .answered = 106.001, .received = 6.002},
                                          {.sent = 7.0, .answered = 107.001, .received = 7.9}};
  CHECK(clock_offset(probes) == doctest::Approx(100));
}

}  // namespace
}  // namespace octavo
