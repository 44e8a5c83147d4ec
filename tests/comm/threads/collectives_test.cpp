#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "comm/threads/raw_calls.h"
#include "octavo/base/error.h"

namespace octavo {
namespace {

/// What rank `rank` holds at element `i`, exact in double.
double value(int rank, std::int64_t i) {
  return 1000.0 * (rank + 1) + static_cast<double>(i);
}

std::vector<double> values(int rank, std::int64_t count) {
  std::vector<double> x(count);
  for (std::int64_t i = 0; i < count; ++i) x[i] = value(rank, i);
  return x;
}

double sum_of_values(int num_ranks, std::int64_t i) {
  double sum = 0;
  for (int rank = 0; rank < num_ranks; ++rank) sum += value(rank, i);
  return sum;
}

void run_all(ThreadRank& rank, ThreadGroup& group, std::int64_t count) {
  const int num_ranks = rank.size(), here = rank.rank(), root = num_ranks - 1;
  std::vector<double> reduced = values(here, count), broadcast = reduced, rooted = reduced, scattered(count);
  std::vector<double> gathered(num_ranks * count), exchanged(num_ranks * count);
  const std::vector<double> part = values(here, count), whole = values(here, num_ranks * count);
  ThreadPending pending[] = {
      group.post(in_place(Collective::AllReduce, reduced)),
      group.post(in_place(Collective::Broadcast, broadcast, root)),
      group.post(in_place(Collective::Reduce, rooted, root)),
      group.post(raw_call(Collective::ReduceScatter, whole.data(), scattered.data(), count)),
      group.post(raw_call(Collective::AllGather, part.data(), gathered.data(), count)),
      group.post(raw_call(Collective::AllToAll, whole.data(), exchanged.data(), count)),
  };
  // Every rank waits in another order.
  for (int step = 0; step < 6; ++step) pending[(step * 5 + here) % 6].wait();
  bool right = true;
  for (std::int64_t i = 0; i < count; ++i) {
    right &= reduced[i] == sum_of_values(num_ranks, i);
    right &= broadcast[i] == value(root, i);
    right &= rooted[i] == (here == root ? sum_of_values(num_ranks, i) : value(here, i));
    right &= scattered[i] == sum_of_values(num_ranks, here * count + i);
    for (int peer = 0; peer < num_ranks; ++peer) {
      right &= gathered[peer * count + i] == value(peer, i);
      right &= exchanged[peer * count + i] == value(peer, here * count + i);
    }
  }
  CHECK(right);
}

TEST_CASE("every collective gives what it says, in flight together, for any number of ranks and elements") {
  for (int num_ranks = 1; num_ranks <= 5; ++num_ranks) {
    run_rank_threads(ranks(num_ranks), [](ThreadRank& rank) {
      const auto group = everyone(rank);
      for (const std::int64_t count : {0, 1, 3, 33, 100, 5000}) run_all(rank, *group, count);
    });
  }
}

TEST_CASE("more operations may be in flight than a lane has cells") {
  run_rank_threads(ranks(3), [](ThreadRank& rank) {
    const auto group = everyone(rank);
    constexpr int kNumOperations = 100;
    std::vector<std::vector<double>> buffers(kNumOperations, std::vector<double>(10, rank.rank() + 1));
    std::vector<ThreadPending> pending;
    for (auto& buffer : buffers) pending.push_back(group->post(in_place(Collective::AllReduce, buffer)));
    for (int index = kNumOperations - 1; index >= 0; --index) pending[index].wait();
    CHECK(std::all_of(buffers.begin(), buffers.end(),
                      [](const auto& buffer) { return buffer == std::vector<double>(10, 6.0); }));
  });
}

TEST_CASE("sends meet the receives of their peer in order, both ways at once") {
  run_rank_threads(ranks(4), [](ThreadRank& rank) {
    const auto group = everyone(rank);
    const int next = (rank.rank() + 1) % 4, previous = (rank.rank() + 3) % 4;
    constexpr int kRounds = 40;
    std::vector<std::int64_t> sent(kRounds), received(kRounds), back(kRounds);
    std::vector<ThreadPending> pending;
    for (int round = 0; round < kRounds; ++round) {
      sent[round] = 100 * rank.rank() + round;
      std::int64_t* out = &received[round];
      pending.push_back(group->post(raw_call<std::int64_t>(Collective::Receive, nullptr, out, 1, previous)));
      pending.push_back(group->post(raw_call<std::int64_t>(Collective::Send, &sent[round], nullptr, 1, next)));
      pending.push_back(group->post(raw_call<std::int64_t>(Collective::Send, &sent[round], nullptr, 1, previous)));
      pending.push_back(group->post(raw_call<std::int64_t>(Collective::Receive, nullptr, &back[round], 1, next)));
    }
    for (auto& one : pending) one.wait();
    bool right = true;
    for (int round = 0; round < kRounds; ++round) {
      right &= received[round] == 100 * previous + round;
      right &= back[round] == 100 * next + round;
    }
    CHECK(right);
  });
}

TEST_CASE("two axes may be in flight at once and be waited for in different orders") {
  run_rank_threads(ranks(4), [](ThreadRank& rank) {
    const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Tensor, 2}});
    const auto data = rank.split(rank_group(mesh, rank.rank(), std::vector{Axis::Data}));
    const auto tensor = rank.split(rank_group(mesh, rank.rank(), std::vector{Axis::Tensor}));
    for (int round = 0; round < 50; ++round) {
      std::vector<float> x(1000, static_cast<float>(rank.rank())), y = x;
      ThreadPending over_data = data->post(in_place(Collective::AllReduce, x));
      ThreadPending over_tensor = tensor->post(in_place(Collective::AllReduce, y));
      if (rank.rank() % 3 == 0) {
        over_tensor.wait();
        over_data.wait();
      } else {
        over_data.wait();
        over_tensor.wait();
      }
      CHECK(x[999] == 2.0f * mesh.index(rank.rank(), Axis::Tensor) + 2.0f);
      CHECK(y[999] == 4.0f * mesh.index(rank.rank(), Axis::Data) + 1.0f);
    }
  });
}

TEST_CASE("a barrier lets nobody through before everybody has come") {
  std::atomic<int> arrived{0};
  run_rank_threads(ranks(4), [&](ThreadRank& rank) {
    const auto group = everyone(rank);
    for (int round = 1; round <= 100; ++round) {
      ++arrived;
      group->post(barrier_call()).wait();
      CHECK(arrived.load() >= 4 * round);
      group->post(barrier_call()).wait();
    }
  });
}

TEST_CASE("delays at random places change nothing") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    run_rank_threads(ranks(3), [seed](ThreadRank& rank) {
      std::minstd_rand random(seed * 100 + rank.rank());
      const auto group = everyone(rank);
      for (int round = 0; round < 20; ++round) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
        run_all(rank, *group, 40 * round);
      }
    });
  }
}

TEST_CASE("an operation that is dropped is still carried out") {
  run_rank_threads(ranks(2), [](ThreadRank& rank) {
    const auto group = everyone(rank);
    std::vector<double> x(100, 1.0);
    { const ThreadPending dropped = group->post(in_place(Collective::AllReduce, x)); }
    CHECK(x == std::vector<double>(100, 2.0));
  });
}

TEST_CASE("a world without ranks is a usage error") {
  CHECK_THROWS_AS(run_rank_threads(ranks(0), [](ThreadRank&) {}), UsageError);
}

TEST_CASE("ranks that split different axes are told so") {
  CHECK_THROWS_AS(run_rank_threads(ranks(4),
                                   [](ThreadRank& rank) {
                                     const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Tensor, 2}});
                                     const Axis axis = rank.rank() == 0 ? Axis::Data : Axis::Tensor;
                                     const auto group = rank.split(rank_group(mesh, rank.rank(), std::vector{axis}));
                                     group->post(barrier_call()).wait();
                                   }),
                  UsageError);
}

}  // namespace
}  // namespace octavo
