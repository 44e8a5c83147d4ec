// How the collectives fail, on every backend. See contract.h.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "comm/contract.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr Purpose kPurpose = Purpose::Gradients;

/// Calls `check(backend, num_ranks)` for every backend and every number of ranks from two.
void with_peers(const std::function<void(const ContractBackend&, int)>& check) {
  for (const ContractBackend& backend : contract_backends()) {
    for (const int num_ranks : backend.rank_counts) {
      CAPTURE(backend.name);
      CAPTURE(num_ranks);
      if (num_ranks > 1) check(backend, num_ranks);
    }
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void expect_part(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, cat("\"", text, "\" should say \"", part, "\""));
}

TEST_CASE("when a rank throws, its peers are told at once who it was and why, and its error comes out") {
  with_peers([](const ContractBackend& backend, int num_ranks) {
    const auto begin = std::chrono::steady_clock::now();
    const auto body = [](World& world) {
      const auto group = everyone(world);
      at::Tensor x = at::ones({1000});
      group->all_reduce(x, kPurpose).wait();
      if (world.rank() == 1) throw CheckFailed("the loss is not finite.");
      const std::string text = comm_error_of([&] { group->all_reduce(x, kPurpose).wait(); });
      expect_part(text, cat("[comm] rank ", world.rank(), ": all_reduce #2 over data"));
      expect_part(text, "rank 1 failed: the loss is not finite");
      expect_part(comm_error_of([&] { group->barrier(); }), "rank 1 failed");
    };
    CHECK_THROWS_WITH_AS(backend.run({.num_ranks = num_ranks}, body), "the loss is not finite.", CheckFailed);
    CHECK(seconds_since(begin) < 10);
  });
}

TEST_CASE("a rank that is unwound with operations in flight does not hang, nor do its peers") {
  with_peers([](const ContractBackend& backend, int num_ranks) {
    const auto begin = std::chrono::steady_clock::now();
    const auto body = [](World& world) {
      const auto group = everyone(world);
      at::Tensor x = at::ones({100'000}), y = x.clone(), z = x.clone();
      Pending first = group->all_reduce(x, kPurpose);
      Pending second = group->reduce(y, 0, kPurpose);
      if (world.rank() == 0) throw CheckFailed("out of memory");
      Pending third = group->all_reduce(z, kPurpose);
      third.wait();
    };
    CHECK_THROWS_AS(backend.run({.num_ranks = num_ranks}, body), CheckFailed);
    CHECK(seconds_since(begin) < 10);
  });
}

TEST_CASE("a late rank is named when the deadline has passed, and the group stays failed") {
  with_peers([](const ContractBackend& backend, int num_ranks) {
    const auto body = [](World& world) {
      const auto group = everyone(world);
      at::Tensor x = at::ones({10});
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      const std::string text = comm_error_of([&] { group->all_reduce(x, kPurpose).wait(); });
      expect_part(text, "all_reduce #1 over data waited 0.");
      expect_part(text, " s for rank 1");
      expect_part(text, "Restart from the last checkpoint.");
      (void)comm_error_of([&] { group->all_reduce(x, kPurpose).wait(); });
    };
    CHECK_NOTHROW(backend.run({.num_ranks = num_ranks, .deadline = std::chrono::milliseconds(200)}, body));
  });
}

TEST_CASE("ranks that call different operations are told which") {
  with_peers([](const ContractBackend& backend, int num_ranks) {
    if (!backend.compares_calls) return;
    const auto body = [](World& world) {
      const auto group = everyone(world);
      at::Tensor x = at::ones({world.size() * 8});
      try {
        if (world.rank() == 1) {
          group->all_gather(x, at::ones({8}), kPurpose).wait();
        } else {
          group->all_reduce(x, kPurpose).wait();
        }
      } catch (const UsageError& error) {
        expect_part(error.what(), "op #1 over data is ");
        expect_part(error.what(), "all_gather of 8 float32");
        expect_part(error.what(), cat("all_reduce of ", x.numel(), " float32"));
        return;
      }
      expect(false, "a UsageError was expected");
    };
    CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, body));
  });
}

TEST_CASE("tensors that do not fit are refused with their numbers") {
  for (const ContractBackend& backend : contract_backends()) {
    CAPTURE(backend.name);
    const auto says = [&](const std::string& part, const std::function<void(Communicator&)>& call) {
      const std::string text = refusal(backend, call);
      CAPTURE(text);
      CHECK(text.find("[comm] rank 0: ") == 0);
      CHECK(text.find(part) != std::string::npos);
    };
    const at::Tensor three = at::ones({3}), ten = at::ones({10});
    says("in has 3 elements and out 10", [&](Communicator& c) { (void)c.all_gather(ten, three, kPurpose); });
    says("in has 10 elements and out 3", [&](Communicator& c) { (void)c.reduce_scatter(three, ten, kPurpose); });
    says("in has 3 elements and out 3", [&](Communicator& c) { (void)c.all_to_all(three.clone(), three, kPurpose); });
    says("in is Float on cpu but out Double",
         [&](Communicator& c) { (void)c.all_gather(at::ones({6}, at::kDouble), three, kPurpose); });
    says("dtype Half", [&](Communicator& c) { (void)c.all_reduce(at::ones({4}, at::kHalf), kPurpose); });
    says("peer or root 2", [&](Communicator& c) { (void)c.broadcast(ten, 2, kPurpose); });
    says("this rank itself", [&](Communicator& c) { (void)c.send(ten, 0, kPurpose); });
    says("undefined tensor", [&](Communicator& c) { (void)c.all_reduce(at::Tensor(), kPurpose); });
    says("share memory", [&](Communicator& c) { (void)c.all_reduce(at::ones({1}).expand({4}), kPurpose); });
    says("overlap", [&](Communicator& c) { (void)c.all_to_all(ten, ten.view({10}), kPurpose); });
    says("overlap", [&](Communicator& c) { (void)c.all_gather(ten, ten.narrow(0, 1, 5), kPurpose); });
    says("overlap", [&](Communicator& c) { (void)c.reduce_scatter(ten.narrow(0, 5, 5), ten, kPurpose); });
  }
}

TEST_CASE("an operation keeps its tensors alive") {
  with_peers([](const ContractBackend& backend, int num_ranks) {
    const auto body = [](World& world) {
      const auto group = everyone(world);
      at::Tensor out = at::zeros({world.size() * 50'000});
      Pending gather = [&] {
        at::Tensor temporary = at::full({50'000}, world.rank() + 1);
        return group->all_gather(out, temporary.to(at::kFloat), kPurpose);
      }();
      const at::Tensor other = at::full({50'000}, -1.0);  // likely to get the memory if it was freed
      gather.wait();
      expect(out.min().item<float>() == 1, "the values of the tensors when they were posted");
    };
    CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, body));
  });
}

}  // namespace
}  // namespace octavo
