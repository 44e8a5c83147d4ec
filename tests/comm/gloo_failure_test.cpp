// What the survivors say when a rank's process is killed, or stopped, in the middle of a collective.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/contract.h"
#include "comm/forked_ranks.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/without_memory.h"

namespace octavo {
namespace {

constexpr Purpose kPurpose = Purpose::Gradients;

struct Operation {
  const char* name;
  std::function<void(Communicator&, at::Tensor&, at::Tensor&)> run;
};

std::vector<Operation> operations() {
  const auto part = [](Communicator& c, at::Tensor& x) { return x.chunk(c.size())[c.index()]; };
  return {
      {"all_reduce", [](Communicator& c, at::Tensor& x, at::Tensor&) { c.all_reduce(x, kPurpose).wait(); }},
      {"reduce_scatter",
       [=](Communicator& c, at::Tensor& x, at::Tensor&) { c.reduce_scatter(part(c, x), x, kPurpose).wait(); }},
      {"all_gather",
       [=](Communicator& c, at::Tensor& x, at::Tensor&) { c.all_gather(x, part(c, x), kPurpose).wait(); }},
      {"broadcast", [](Communicator& c, at::Tensor& x, at::Tensor&) { c.broadcast(x, 0, kPurpose).wait(); }},
      {"reduce", [](Communicator& c, at::Tensor& x, at::Tensor&) { c.reduce(x, 0, kPurpose).wait(); }},
      {"all_to_all", [](Communicator& c, at::Tensor& x, at::Tensor& y) { c.all_to_all(y, x, kPurpose).wait(); }},
      {"send",
       [](Communicator& c, at::Tensor& x, at::Tensor& y) {
         Pending sent = c.send(x, (c.index() + 1) % c.size(), kPurpose);
         Pending received = c.recv(y, (c.index() + c.size() - 1) % c.size(), kPurpose);
         received.wait();
         sent.wait();
       }},
      {"share",
       [](Communicator& c, at::Tensor& x, at::Tensor&) {
         const at::Tensor y = c.index() == 0 ? x : without_memory(x.sizes(), x.options());
         c.share(y, 0, kPurpose).wait();
       }},
      {"lend",
       [](Communicator& c, at::Tensor& x, at::Tensor&) {
         Pending lent = c.lend(x, (c.index() + 1) % c.size(), kPurpose);
         c.borrow(without_memory(x.sizes(), x.options()), (c.index() + c.size() - 1) % c.size(), kPurpose).wait();
         lent.wait();
       }},
      {"barrier", [](Communicator& c, at::Tensor&, at::Tensor&) { c.barrier(); }},
  };
}

/// A number that all processes forked from here see.
class SharedCount {
 public:
  SharedCount()
      : count_(new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   std::atomic<int>(0)) {}
  ~SharedCount() { munmap(count_, sizeof(*count_)); }
  std::atomic<int>& operator*() { return *count_; }

 private:
  std::atomic<int>* count_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Every rank repeats the operation; the victim gets `signal` a few rounds after the start.
std::vector<ForkedEnd> strike(const Operation& operation, int num_ranks, int victim, int signal,
                              std::chrono::milliseconds deadline) {
  SharedCount rounds;
  const auto body = [&](World& world) {
    const auto group = everyone(world);
    world.set_step(7);
    at::Tensor x = at::ones({num_ranks * 200'000}), y = at::empty_like(x);
    while (true) {
      operation.run(*group, x, y);
      if (world.rank() == victim) ++*rounds;
    }
  };
  return run_forked({.num_ranks = num_ranks, .deadline = deadline}, body, [&](const std::vector<pid_t>& processes) {
    for (int tries = 0; tries < 5000 && *rounds < 5; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(processes[victim], signal);
  });
}

void check_survivors(const Operation& operation, int signal, std::chrono::milliseconds deadline, double patience) {
  for (const int num_ranks : {2, 3, 4}) {
    const int victim = num_ranks == 3 ? 0 : num_ranks - 1;
    CAPTURE(std::string(operation.name));
    CAPTURE(num_ranks);
    const std::vector<ForkedEnd> ended = strike(operation, num_ranks, victim, signal, deadline);
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (rank == victim) continue;
      CAPTURE(rank);
      CAPTURE(ended[rank].text);
      CHECK(ended[rank].signal == 0);
      CHECK(ended[rank].type == "CommError");
      CHECK(contains(ended[rank].text, cat("[comm] rank ", rank, ": ")));
      CHECK(contains(ended[rank].text, cat("rank ", victim, signal == SIGKILL ? " failed: its process ended" : "")));
      CHECK(contains(ended[rank].text, " over data"));
      CHECK(contains(ended[rank].text, " at step 7"));
      // With sends and receives it is either that met the failure.
      const std::string name = operation.name, back = name == "send" ? "recv" : name == "lend" ? "borrow" : name;
      const bool named = contains(ended[rank].text, name) || contains(ended[rank].text, back);
      CHECK(named);
      CHECK(contains(ended[rank].report, cat("rank ", rank, ", the last ")));
      CHECK(contains(ended[rank].report, "step 7"));
      CHECK(ended[rank].seconds < patience);
    }
  }
}

TEST_CASE("when a rank's process is killed in a collective, all survivors name it, the collective, axis and step") {
  for (const Operation& operation : operations()) {
    check_survivors(operation, SIGKILL, std::chrono::seconds(20), /*patience=*/8);
  }
}

TEST_CASE("when a rank's process stands still, all survivors name it once the deadline has passed") {
  for (const Operation& operation : operations()) {
    check_survivors(operation, SIGSTOP, std::chrono::milliseconds(500), /*patience=*/10);
  }
}

TEST_CASE("a rank that returns while its peers need it is named") {
  const auto ended = run_forked({.num_ranks = 3, .deadline = std::chrono::seconds(30)}, [](World& world) {
    const auto group = everyone(world);
    group->barrier();
    if (world.rank() != 2) group->all_reduce(at::ones({4}), kPurpose).wait();
  });
  for (const int rank : {0, 1}) {
    CAPTURE(ended[rank].text);
    CHECK(ended[rank].type == "CommError");
    CHECK(contains(ended[rank].text, "rank 2 failed: it returned while rank "));
    CHECK(ended[rank].seconds < 10);
  }
  CHECK(ended[2].type.empty());
}

TEST_CASE("without a mismatch, comparing calls changes nothing, and with one every rank is told both calls") {
  const auto ended = run_forked({.num_ranks = 4, .check_calls = true}, [](World& world) {
    const auto group = everyone(world);
    at::Tensor x = at::ones({64});
    group->all_reduce(x, kPurpose).wait();
    expect(x[0].item<float>() == 4, "the sum");
    if (world.rank() == 2) x = at::ones({65});
    group->all_reduce(x, kPurpose).wait();
  });
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(ended[rank].text);
    CHECK(ended[rank].type == "UsageError");
    CHECK(contains(ended[rank].text, "all_reduce of 64 float32 for gradients"));
    CHECK(contains(ended[rank].text, "all_reduce of 65 float32 for gradients"));
  }
}

TEST_CASE("exchanged times split waiting into skew and transfer") {
  const auto ended = run_forked({.num_ranks = 3}, [](World& world) {
    const auto group = everyone(world);
    group->barrier();
    world.exchange_times();
    world.ledger().reset();
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    group->all_reduce(at::ones({1000}), kPurpose).wait();
    if (world.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    at::Tensor x = at::ones({10});
    if (world.rank() == 2) group->send(x, 0, kPurpose).wait();
    if (world.rank() == 0) group->recv(x, 2, kPurpose).wait();
    world.exchange_times();
    for (const LedgerRow& row : world.ledger().rows()) {
      const bool waits_long = row.kind == Collective::AllReduce ? world.rank() != 1 : row.kind == Collective::Receive;
      expect(waits_long == (row.waited > 0.1), cat("waited ", row.waited, " in ", collective_name(row.kind)));
      expect(waits_long == (row.skew > 0.1), cat("skew ", row.skew, " in ", collective_name(row.kind)));
      expect(row.waited - row.skew < 0.1, "exposed communication");
    }
  });
  for (const ForkedEnd& end : ended) CHECK(end.text == "");
}

}  // namespace
}  // namespace octavo
