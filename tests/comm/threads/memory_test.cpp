// Memory of a rank that leaves an operation in a hurry. Most telling under AddressSanitizer and ThreadSanitizer, which
// see a peer that still reads or writes a freed buffer; without them the marks written after leaving catch the writes.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>

#include "comm/threads/raw_calls.h"
#include "octavo/base/error.h"

namespace octavo {
namespace {

constexpr std::int64_t kCount = 200'000;  // long enough that a peer is often in the middle of reading it

struct Buffers {
  std::vector<float> x = std::vector<float>(kCount, 1);
  std::vector<float> parts = std::vector<float>(4 * kCount, 1);
  std::vector<float> whole = std::vector<float>(4 * kCount, 1);
};

void post_and_wait(ThreadGroup& group, Buffers& buffers, int victim, std::minstd_rand& random) {
  ThreadPending reduce = group.post(in_place(Collective::Reduce, buffers.x, victim));
  ThreadPending scatter =
      group.post(raw_call(Collective::ReduceScatter, buffers.parts.data(), buffers.whole.data(), kCount));
  const bool throws = group.index() == victim;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % (throws ? 600 : 100)));
  if (throws) throw CommError("the victim leaves");
  reduce.wait();
  scatter.wait();
  ThreadPending gather = group.post(raw_call(Collective::AllGather, buffers.x.data(), buffers.whole.data(), kCount));
  ThreadPending all = group.post(in_place(Collective::AllReduce, buffers.parts));
  gather.wait();
  all.wait();
}

TEST_CASE("nobody reads or writes the memory of a rank that has thrown") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const int num_ranks = 2 + static_cast<int>(seed % 3), victim = static_cast<int>(seed / 3) % num_ranks;
    CHECK_THROWS_AS(run_rank_threads(ranks(num_ranks),
                                     [&](ThreadRank& rank) {
                                       std::minstd_rand random(seed * 10 + rank.rank() + 1);
                                       const auto group = everyone(rank);
                                       auto buffers = std::make_unique<Buffers>();
                                       try {
                                         post_and_wait(*group, *buffers, victim, random);
                                       } catch (const CommError&) {
                                         std::fill(buffers->x.begin(), buffers->x.end(), -7.0f);
                                         std::fill(buffers->whole.begin(), buffers->whole.end(), -7.0f);
                                         std::this_thread::sleep_for(std::chrono::microseconds(300));
                                         CHECK(buffers->x == std::vector<float>(kCount, -7));
                                         CHECK(buffers->whole == std::vector<float>(4 * kCount, -7));
                                         buffers.reset();
                                         throw;
                                       }
                                     }),
                    CommError);
  }
}

TEST_CASE("nobody touches the memory of a rank whose deadline has passed") {
  for (int round = 0; round < 10; ++round) {
    const auto body = [](ThreadRank& rank) {
      const auto group = everyone(rank);
      auto x = std::make_unique<std::vector<float>>(kCount, 1.0f);
      if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // just about the deadline
      try {
        group->post(in_place(Collective::Reduce, *x, 0)).wait();
      } catch (const CommError&) {
        std::fill(x->begin(), x->end(), -7.0f);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        CHECK(*x == std::vector<float>(kCount, -7));
      }
      x.reset();
    };
    run_rank_threads(ranks(3, std::chrono::milliseconds(20)), body);
  }
}

TEST_CASE("memory may be reused as soon as an operation is done") {
  run_rank_threads(ranks(3), [](ThreadRank& rank) {
    std::minstd_rand random(rank.rank() + 1);
    const auto group = everyone(rank);
    bool right = true;
    for (int round = 0; round < 60; ++round) {
      auto in = std::make_unique<std::vector<float>>(2000, static_cast<float>(round));
      auto out = std::make_unique<std::vector<float>>(6000);
      ThreadPending broadcast = group->post(in_place(Collective::Broadcast, *in, round % 3));
      broadcast.wait();
      std::fill(in->begin(), in->end(), static_cast<float>(rank.rank()));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
      group->post(raw_call(Collective::AllGather, in->data(), out->data(), 2000)).wait();
      in.reset();
      for (int peer = 0; peer < 3; ++peer) right &= (*out)[peer * 2000 + 1999] == static_cast<float>(peer);
    }
    CHECK(right);
  });
}

}  // namespace
}  // namespace octavo
