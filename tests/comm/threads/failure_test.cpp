#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "comm/threads/poison.h"
#include "comm/threads/raw_calls.h"
#include "octavo/base/error.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;

class OutOfPaper : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The text of the CommError that `action` throws; empty if it throws none.
template <class Action>
std::string comm_error(const Action& action) {
  try {
    action();
  } catch (const CommError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a rank that throws ends its peers' waits at once, with its name and its words, and its error comes out") {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> told{0};
  CHECK_THROWS_AS(run_rank_threads(ranks(4),
                                   [&](ThreadRank& rank) {
                                     const auto group = everyone(rank);
                                     std::vector<float> x(1000, 1);
                                     group->post(in_place(Collective::AllReduce, x)).wait();
                                     if (rank.rank() == 2) throw OutOfPaper("tray 2 is empty.");
                                     const std::string text =
                                         comm_error([&] { group->post(in_place(Collective::AllReduce, x)).wait(); });
                                     told += contains(text, "rank 2 failed: tray 2 is empty. Restart");
                                     throw CommError(text);
                                   }),
                  OutOfPaper);
  CHECK(told == 3);
  CHECK(seconds_since(begin) < 5);
}

TEST_CASE("a rank that throws with operations in flight still tells its peers why") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> told{0};
    CHECK_THROWS_AS(run_rank_threads(ranks(3),
                                     [&](ThreadRank& rank) {
                                       const auto group = everyone(rank);
                                       std::vector<float> x(1000, 1), y(1000, 1);
                                       const auto both = [&] {
                                         ThreadPending first = group->post(in_place(Collective::AllReduce, x));
                                         if (rank.rank() == 1) throw OutOfPaper("tray 1 is empty");
                                         ThreadPending second = group->post(in_place(Collective::AllReduce, y));
                                         first.wait();
                                         second.wait();
                                       };
                                       if (rank.rank() == 1) both();
                                       told += contains(comm_error(both), "rank 1 failed: tray 1 is empty");
                                     }),
                    OutOfPaper);
    CHECK(told == 2);
  }
}

TEST_CASE("a rank that comes too late is named by the rank that waited, and everybody is told") {
  std::atomic<int> named{0};
  const auto body = [&](ThreadRank& rank) {
    const auto group = everyone(rank);
    std::vector<float> x(10, 1);
    if (rank.rank() == 1) std::this_thread::sleep_for(milliseconds(600));
    const std::string text = comm_error([&] { group->post(in_place(Collective::AllReduce, x)).wait(); });
    named += contains(text, "all_reduce #1 over data waited 0.") && contains(text, " s for rank 1");
    throw CommError(text);
  };
  const std::string text = comm_error([&] { run_rank_threads(ranks(3, milliseconds(200)), body); });
  CHECK(named == 3);
  CHECK(contains(text, " s for rank 1. Restart from the last checkpoint."));
}

TEST_CASE("a rank that returns early is named at once") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = comm_error([] {
    run_rank_threads(ranks(2), [](ThreadRank& rank) {
      const auto group = everyone(rank);
      if (rank.rank() == 0) group->post(barrier_call()).wait();
    });
  });
  CHECK(contains(text, "rank 1 failed: it returned while rank 0 was in barrier #1 over data"));
  CHECK(seconds_since(begin) < 5);
}

/// Runs calls that differ between ranks; returns the texts by rank.
std::vector<std::string> run_mismatch(int num_ranks, const std::function<RawCall(int, std::vector<float>&)>& call) {
  std::vector<std::string> texts(num_ranks);
  run_rank_threads(ranks(num_ranks), [&](ThreadRank& rank) {
    const auto group = everyone(rank);
    std::vector<float> x(64, 1);
    try {
      group->post(call(rank.rank(), x)).wait();
    } catch (const UsageError& error) {
      texts[rank.rank()] = error.what();
    }
  });
  return texts;
}

TEST_CASE("ranks whose calls differ are all told how they differ") {
  const auto kinds = run_mismatch(3, [](int rank, std::vector<float>& x) {
    return rank == 1 ? raw_call(Collective::AllGather, x.data(), x.data(), 8) : in_place(Collective::AllReduce, x);
  });
  const auto counts = run_mismatch(2, [](int rank, std::vector<float>& x) {
    return raw_call(Collective::AllReduce, x.data(), x.data(), rank == 1 ? 8 : 9);
  });
  const auto roots =
      run_mismatch(2, [](int rank, std::vector<float>& x) { return in_place(Collective::Broadcast, x, rank); });
  const auto purposes = run_mismatch(2, [](int rank, std::vector<float>& x) {
    RawCall call = in_place(Collective::AllReduce, x);
    if (rank == 1) call.purpose = Purpose::Loss;
    return call;
  });
  const auto types = run_mismatch(2, [](int rank, std::vector<float>& x) {
    RawCall call = raw_call(Collective::AllReduce, x.data(), x.data(), 8);
    if (rank == 1) call.type = WireType::F64;
    return call;
  });
  for (const auto* texts : {&kinds, &counts, &roots, &purposes, &types}) {
    for (const std::string& text : *texts) CHECK(contains(text, "op #1 over data is "));
  }
  CHECK(contains(kinds[1], "all_gather of 8 float32 for activations"));
  CHECK(contains(kinds[1], "all_reduce of 64 float32 for activations"));
  CHECK(contains(roots[0], "with root 1"));
  CHECK(contains(purposes[0], "for loss"));
  CHECK(contains(types[0], "8 float64"));
}

TEST_CASE("a send and a receive of different lengths are a mismatch") {
  const auto texts = run_mismatch(2, [](int rank, std::vector<float>& x) {
    return rank == 0 ? raw_call<float>(Collective::Send, x.data(), nullptr, 8, 1)
                     : raw_call<float>(Collective::Receive, nullptr, x.data(), 9, 0);
  });
  for (const std::string& text : texts) CHECK(contains(text, "float32"));
}

TEST_CASE("a group that failed stays failed, other groups go on") {
  std::atomic<int> still_failed{0}, other_right{0};
  run_rank_threads(ranks(4, milliseconds(500)), [&](ThreadRank& rank) {
    const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Tensor, 2}});
    const auto data = rank.split(rank_group(mesh, rank.rank(), std::vector{Axis::Data}));
    const auto tensor = rank.split(rank_group(mesh, rank.rank(), std::vector{Axis::Tensor}));
    std::vector<float> x(10, 1);
    if (mesh.index(rank.rank(), Axis::Data) == 0) {
      CHECK(!comm_error([&] { data->post(in_place(Collective::AllReduce, x)).wait(); }).empty());
    } else {
      std::this_thread::sleep_for(milliseconds(1000));
    }
    still_failed += !comm_error([&] { (void)data->post(in_place(Collective::AllReduce, x)); }).empty();
    std::vector<float> y(10, 1);
    tensor->post(in_place(Collective::AllReduce, y)).wait();
    other_right += y[9] == 2;
  });
  CHECK(still_failed == 4);
  CHECK(other_right == 4);
}

TEST_CASE("an error met by a dropped operation is thrown by the next call") {
  std::atomic<bool> thrown{false};
  run_rank_threads(ranks(2, milliseconds(100)), [&](ThreadRank& rank) {
    const auto group = everyone(rank);
    std::vector<float> x(10, 1);
    if (rank.rank() == 1) return std::this_thread::sleep_for(milliseconds(300));
    { const ThreadPending dropped = group->post(in_place(Collective::AllReduce, x)); }
    thrown = !comm_error([&] { (void)group->post(in_place(Collective::AllReduce, x)); }).empty();
  });
  CHECK(thrown);
}

TEST_CASE("operations in flight on a poisoned group are dropped without a wait") {
  const auto begin = std::chrono::steady_clock::now();
  run_rank_threads(ranks(2, milliseconds(200)), [&](ThreadRank& rank) {
    const auto group = everyone(rank);
    if (rank.rank() == 1) return std::this_thread::sleep_for(milliseconds(500));
    std::vector<std::vector<float>> buffers(30, std::vector<float>(10, 1));
    std::vector<ThreadPending> pending;
    for (auto& buffer : buffers) pending.push_back(group->post(in_place(Collective::AllReduce, buffer)));
    CHECK(!comm_error([&] { pending[3].wait(); }).empty());
  });
  CHECK(seconds_since(begin) < 3);  // thirty deadlines would be 6 s
}

TEST_CASE("a group made after a member died reports that member") {
  const auto text = comm_error([] {
    run_rank_threads(ranks(2), [](ThreadRank& rank) {
      if (rank.rank() == 1) throw CommError("the cable is out");
      std::this_thread::sleep_for(milliseconds(50));
      const auto group = everyone(rank);
      const std::string seen = comm_error([&] { group->post(barrier_call()).wait(); });
      CHECK(contains(seen, "rank 1 failed: the cable is out"));
    });
  });
  CHECK(text == "the cable is out");
}

}  // namespace
}  // namespace octavo
