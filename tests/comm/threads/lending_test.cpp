// Lending in the transport: who reads whose memory until when, on raw memory, so that the sanitizers can judge it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "comm/threads/raw_calls.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int64_t kCount = 20'000;
using Memory = std::shared_ptr<std::vector<float>>;

Memory memory_of(int owner) {
  return std::make_shared<std::vector<float>>(kCount, static_cast<float>(owner + 1));
}

/// The memory counted, pointing at its first element.
std::shared_ptr<const void> counted(const Memory& memory) {
  return {memory, memory->data()};
}

/// Rank `root` lends `memory` to everybody.
ThreadPending share(ThreadGroup& group, const Memory& memory, int root) {
  const bool owns = group.index() == root;
  const float* owned = owns ? memory->data() : nullptr;
  return group.post(lending(Collective::Broadcast, owned, kCount, root), owns ? counted(memory) : nullptr);
}
ThreadPending lend(ThreadGroup& group, const Memory& memory, int peer) {
  return group.post(lending(Collective::Send, memory->data(), kCount, peer), counted(memory));
}
ThreadPending borrow(ThreadGroup& group, int peer) {
  return group.post(lending<float>(Collective::Receive, nullptr, kCount, peer));
}

bool reads(const ThreadPending& held, int owner) {
  const auto* values = static_cast<const float*>(held.borrowed().get());
  return std::all_of(values, values + kCount, [&](float value) { return value == static_cast<float>(owner + 1); });
}

void sleep_a_little(std::minstd_rand& random, int most) {
  std::this_thread::sleep_for(microseconds(random() % most));
}

TEST_CASE("readers see the owner's own memory, and the owner may change it once all have released it") {
  std::array<std::atomic<const void*>, 3> addresses{};
  run_rank_threads(ranks(3), [&](ThreadRank& rank) {
    std::minstd_rand random(rank.rank() + 1);
    const auto group = everyone(rank);
    bool right = true;
    for (int round = 0; round < 60; ++round) {
      const int root = round % 3, here = rank.rank();
      const Memory memory = memory_of(here);
      addresses[here] = memory->data();
      {
        ThreadPending pending = share(*group, memory, root);
        pending.wait();
        if (here != root) {
          sleep_a_little(random, 100);
          right &= pending.borrowed().get() == addresses[root] && reads(pending, root);
        } else {
          std::fill(memory->begin(), memory->end(), -7.0f);
          right &= pending.borrowed() == nullptr && memory.use_count() == 1;
        }
      }
      {
        ThreadPending lent = lend(*group, memory, (here + 1) % 3);
        const int owner = (here + 2) % 3;
        {
          ThreadPending held = borrow(*group, owner);
          held.wait();
          right &= held.borrowed().get() == addresses[owner];
        }
        lent.wait();
        std::fill(memory->begin(), memory->end(), -8.0f);
      }
    }
    CHECK(right);
    CHECK(rank.ledger().rows()[0].copied == 0);
  });
}

TEST_CASE("the owner's wait lasts until the last reader has released, and names those who do not") {
  std::atomic<bool> released{false}, early{false};
  run_rank_threads(ranks(3), [&](ThreadRank& rank) {
    const auto group = everyone(rank);
    const Memory memory = memory_of(rank.rank());
    ThreadPending pending = share(*group, memory, 0);
    pending.wait();
    if (rank.rank() == 0) early = !released;
    if (rank.rank() != 2) return;
    std::this_thread::sleep_for(milliseconds(30));
    released = true;
  });
  CHECK(!early);

  std::string text;
  CHECK_THROWS_AS(run_rank_threads(ranks(3, milliseconds(100)),
                                   [&](ThreadRank& rank) {
                                     const auto group = everyone(rank);
                                     ThreadPending pending = share(*group, memory_of(rank.rank()), 0);
                                     try {
                                       pending.wait();
                                     } catch (const CommError& error) {
                                       text = error.what();
                                       throw;
                                     }
                                     if (rank.rank() == 2) std::this_thread::sleep_for(milliseconds(400));
                                   }),
                  CommError);
  CHECK(text.find("share #1 over data waited 0.1 s for rank 2") != std::string::npos);
}

TEST_CASE("more may be held at once than a lane has cells, and released in any order") {
  run_rank_threads(ranks(2), [](ThreadRank& rank) {
    std::minstd_rand random(rank.rank() + 1);
    const auto group = everyone(rank);
    const Memory memory = memory_of(rank.rank());
    std::vector<std::unique_ptr<ThreadPending>> lent, held;
    for (int number = 0; number < 50; ++number) {
      auto& mine = number % 2 == rank.rank() ? lent : held;
      mine.push_back(std::make_unique<ThreadPending>(share(*group, memory, number % 2)));
      lent.push_back(std::make_unique<ThreadPending>(lend(*group, memory, 1 - rank.rank())));
      held.push_back(std::make_unique<ThreadPending>(borrow(*group, 1 - rank.rank())));
    }
    bool right = true;
    for (const auto& each : held) each->wait();
    std::shuffle(held.begin(), held.end(), random);
    for (auto& each : held) {
      right &= reads(*each, 1 - rank.rank());
      each.reset();
    }
    for (const auto& each : lent) each->wait();
    CHECK(right);
    CHECK(memory.use_count() == 1);
  });
}

// Each rank holds the others' memory and lends its own when the victim throws; then all let go in any order.
void hold_and_lend(ThreadGroup& group, const Memory& memory, int victim, std::minstd_rand& random) {
  std::vector<std::unique_ptr<ThreadPending>> pending;
  std::vector<int> owners;
  for (int root = 0; root < group.size(); ++root) {
    pending.push_back(std::make_unique<ThreadPending>(share(group, memory, root)));
    owners.push_back(root);
  }
  pending.push_back(std::make_unique<ThreadPending>(lend(group, memory, (group.index() + 1) % group.size())));
  owners.push_back(group.index());
  owners.push_back((group.index() + group.size() - 1) % group.size());
  pending.push_back(std::make_unique<ThreadPending>(borrow(group, owners.back())));
  sleep_a_little(random, 300);
  if (group.index() == victim && random() % 2 == 0) throw CommError("the victim leaves");
  for (std::size_t index = 0; index < pending.size(); ++index) {
    if (owners[index] != group.index()) pending[index]->wait();
  }
  if (group.index() == victim) throw CommError("the victim leaves while it holds and lends");
  // The owner of these may be gone: its memory is not.
  for (std::size_t index = 0; index < pending.size(); ++index) {
    if (owners[index] != group.index() && !reads(*pending[index], owners[index])) throw InternalError("torn values");
  }
  for (std::size_t index = 0; index < pending.size(); ++index) {
    if (owners[index] != group.index()) pending[index].reset();
  }
  for (std::size_t index = 0; index < pending.size(); ++index) {
    if (owners[index] == group.index()) pending[index]->wait();
  }
}

TEST_CASE("when a rank dies that holds and lends, readers finish what they hold, and nobody waits for anybody") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const int num_ranks = 2 + static_cast<int>(seed % 3), victim = static_cast<int>(seed / 3) % num_ranks;
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(run_rank_threads(ranks(num_ranks),
                                          [&](ThreadRank& rank) {
                                            std::minstd_rand random(seed * 10 + rank.rank() + 1);
                                            const auto group = everyone(rank);
                                            Memory memory = memory_of(rank.rank());
                                            hold_and_lend(*group, memory, victim, random);
                                          }),
                         doctest::Contains("the victim leaves"), CommError);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  }
}

TEST_CASE("memory that is lent when its owner fails is freed when the last reader has released it") {
  std::weak_ptr<std::vector<float>> watched;
  std::atomic<bool> reader_ready{false}, owner_gone{false}, alive_while_held{false}, freed_after{false};
  CHECK_THROWS_AS(run_rank_threads(ranks(2),
                                   [&](ThreadRank& rank) {
                                     const auto group = everyone(rank);
                                     if (rank.rank() == 0) {
                                       Memory memory = memory_of(0);
                                       watched = memory;
                                       try {
                                         ThreadPending lent = share(*group, memory, 0);
                                         memory.reset();
                                         group->post(barrier_call()).wait();
                                         // A reader that still waits in the barrier would be told of the failure there.
                                         while (!reader_ready) std::this_thread::yield();
                                         throw CommError("the owner leaves");
                                       } catch (...) {
                                         owner_gone = true;
                                         throw;
                                       }
                                     }
                                     {
                                       ThreadPending held = share(*group, nullptr, 0);
                                       held.wait();
                                       group->post(barrier_call()).wait();
                                       reader_ready = true;
                                       while (!owner_gone) std::this_thread::yield();
                                       alive_while_held = !watched.expired() && reads(held, 0);
                                     }
                                     freed_after = watched.expired();
                                   }),
                  CommError);
  CHECK(alive_while_held);
  CHECK(freed_after);
}

TEST_CASE("a share fits no broadcast, a lend no receive") {
  const auto text_of = [](const RawCall& owner, const RawCall& reader) {
    std::string text;
    const Memory memory = memory_of(0);
    run_rank_threads(ranks(2), [&](ThreadRank& rank) {
      const auto group = everyone(rank);
      try {
        RawCall call = rank.rank() == 0 ? owner : reader;
        if (rank.rank() == 0) call.in = reinterpret_cast<const std::byte*>(memory->data());
        group->post(call, call.lends && rank.rank() == 0 ? counted(memory) : nullptr).wait();
      } catch (const UsageError& error) {
        if (rank.rank() == 0) text = error.what();  // the same on both
      }
    });
    return text;
  };
  std::vector<float> x(kCount);
  const std::string shared =
      text_of(lending<float>(Collective::Broadcast, nullptr, kCount, 0), in_place(Collective::Broadcast, x, 0));
  CHECK(shared.find("share of 20000 float32 for activations with root 0") != std::string::npos);
  CHECK(shared.find("broadcast of 20000") != std::string::npos);
  const std::string lent = text_of(lending<float>(Collective::Send, nullptr, kCount, 1),
                                   raw_call<float>(Collective::Receive, nullptr, x.data(), kCount, 0));
  CHECK(lent.find("lend of 20000") != std::string::npos);
  const std::string borrowed = text_of(raw_call<float>(Collective::Send, x.data(), nullptr, kCount, 1),
                                       lending<float>(Collective::Receive, nullptr, kCount, 0));
  CHECK(borrowed.find("borrow of 20000") != std::string::npos);
}

TEST_CASE("on one rank sharing is the identity") {
  run_rank_threads(ranks(1), [](ThreadRank& rank) {
    const auto group = everyone(rank);
    const Memory memory = memory_of(0);
    share(*group, memory, 0).wait();
    CHECK(memory->front() == 1);
    CHECK(memory.use_count() == 1);
  });
}

}  // namespace
}  // namespace octavo
