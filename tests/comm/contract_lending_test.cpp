// Memory that is lent instead of copied, on every backend. See contract.h.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "comm/contract.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/run_ranks.h"
#include "octavo/comm/without_memory.h"
#include "octavo/memory/account.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

constexpr Purpose kPurpose = Purpose::Weights;

void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(at::equal(got, wanted), what);
}

bool has_memory(const at::Tensor& x) {
  return x.storage().data() != nullptr;
}

at::Tensor reader(const at::Tensor& like) {
  return without_memory(like.sizes(), like.options());
}

/// `x` of rank `root` on every rank; on the others a tensor that borrows.
std::pair<at::Tensor, Pending> shared(Communicator& group, const at::Tensor& x, int root) {
  const at::Tensor here = group.index() == root ? x : reader(x);
  return {here, group.share(here, root, kPurpose)};
}

/// Runs `check` where lent memory is the owner's, or where it is not.
void where_memory_is(bool shared, const std::function<void(const ContractBackend&, int)>& check) {
  for (const ContractBackend& backend : contract_backends()) {
    for (const int num_ranks : backend.rank_counts) {
      CAPTURE(backend.name);
      CAPTURE(num_ranks);
      if (num_ranks > 1 && backend.shares_memory == shared) check(backend, num_ranks);
    }
  }
}

/// Each rank tells the others a number of its own; by rank.
std::vector<std::int64_t> numbers_of_all(Communicator& group, std::int64_t own) {
  at::Tensor all = at::empty({group.size()}, at::kLong);
  group.all_gather(all, at::full({1}, own, at::kLong), Purpose::Control).wait();
  return {all.data_ptr<std::int64_t>(), all.data_ptr<std::int64_t>() + group.size()};
}

std::int64_t address(const at::Tensor& x) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x.const_data_ptr()));
}

TEST_CASE("share gives every rank the root's values to read, until it lets them go") {
  for (const ContractBackend& backend : contract_backends()) {
    for (const int num_ranks : backend.rank_counts) {
      for (const at::ScalarType dtype : backend.dtypes) {
        CAPTURE(backend.name);
        CAPTURE(num_ranks);
        CAPTURE(c10::toString(dtype));
        CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, [&](World& world) {
          const auto group = everyone(world);
          for (const auto& [rows, columns] : {std::pair{0, 3}, {1, 1}, {7, 5}, {300, 133}}) {
            for (int root = 0; root < world.size(); ++root) {
              const at::Tensor mine = whole_numbers({rows, columns}, dtype, 3, world.rank());
              auto [x, pending] = shared(*group, mine, root);
              pending.wait();
              expect_equal(x, whole_numbers({rows, columns}, dtype, 3, root), "x after share");
              expect(pending.holds_memory() == (root != world.rank()), "a reader holds memory, the owner does not");
              const at::Tensor view = x.view({-1});
              pending = {};
              expect(has_memory(view) == (root == world.rank() && rows > 0), "only the owner keeps its memory");
              expect_equal(mine, whole_numbers({rows, columns}, dtype, 3, world.rank()), "the rank's own tensor");
            }
          }
        }));
      }
    }
  }
}

TEST_CASE("lends meet borrows in order, in a ring and against it, with sends in between") {
  on_all_backends(
      [](World& world) {
        const auto group = everyone(world);
        const int num_ranks = world.size(), here = world.rank();
        const int next = (here + 1) % num_ranks, previous = (here + num_ranks - 1) % num_ranks;
        std::vector<at::Tensor> got;
        std::vector<Pending> held, lent;
        for (int round = 0; round < 40; ++round) {
          const bool lends = round % 3 != 0;
          const int to = round % 5 == 0 ? previous : next, from = round % 5 == 0 ? next : previous;
          const at::Tensor mine = whole_numbers({3, 4}, at::kFloat, round, here);
          got.push_back(lends ? reader(mine) : at::zeros_like(mine));
          lent.push_back(lends ? group->lend(mine, to, kPurpose) : group->send(mine, to, kPurpose));
          held.push_back(lends ? group->borrow(got.back(), from, kPurpose) : group->recv(got.back(), from, kPurpose));
        }
        for (auto& one : held) one.wait();
        for (int round = 0; round < 40; ++round) {
          expect_equal(got[round], whole_numbers({3, 4}, at::kFloat, round, round % 5 == 0 ? next : previous),
                       cat("round ", round));
        }
        held.clear();
        for (auto& one : lent) one.wait();
      },
      2);
}

TEST_CASE("where ranks share memory, lent memory is the owner's own: no copy, no allocation") {
  install_tracking_allocator();
  where_memory_is(/*shared=*/true, [](const ContractBackend& backend, int num_ranks) {
    const auto body = [](World& world) {
      const AccountHandle account = MemoryAccount::create();
      const ChargeTo charge(account.get());
      const auto group = everyone(world);
      expect(group->shares_memory(), "the communicator says so");
      const int here = world.rank(), next = (here + 1) % world.size(),
                previous = (here + world.size() - 1) % world.size();
      const at::Tensor mine = whole_numbers({100, 100}, at::kFloat, 1, here);
      const std::vector<std::int64_t> addresses = numbers_of_all(*group, address(mine));
      const Bytes before = account->live().total;
      account->reset_peak();
      for (int root = 0; root < world.size(); ++root) {
        auto [x, pending] = shared(*group, mine, root);
        pending.wait();
        expect(address(x) == addresses[root], "x lies where the root's does");
      }
      const at::Tensor x = reader(mine);
      Pending lent = group->lend(mine, next, kPurpose);
      Pending held = group->borrow(x, previous, kPurpose);
      held.wait();
      expect(address(x) == addresses[previous], "x lies where its owner's does");
      held = {};
      lent.wait();
      expect(account->peak().total == before, "nothing was allocated");
      for (const LedgerRow& row : world.ledger().rows()) {
        if (row.purpose == kPurpose) expect(row.copied == 0, cat("copied in ", collective_name(row.kind)));
      }
    };
    CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, body));
  });
}

TEST_CASE("where ranks share no memory, lent values arrive in memory that the call allocated") {
  where_memory_is(/*shared=*/false, [](const ContractBackend& backend, int num_ranks) {
    const auto body = [](World& world) {
      install_tracking_allocator();
      const AccountHandle account = MemoryAccount::create();
      const ChargeTo charge(account.get());
      const auto group = everyone(world);
      expect(!group->shares_memory(), "the communicator says so");
      const at::Tensor mine = whole_numbers({100, 100}, at::kFloat, 1, world.rank());
      const Bytes before = account->live().total, arriving = world.rank() == 0 ? 0 : mine.nbytes();
      auto [x, pending] = shared(*group, mine, 0);
      expect(account->live().total == before + arriving, "allocated when posted");
      expect(account->live().by_category[static_cast<int>(MemoryCategory::Communication)] == arriving, "category");
      pending.wait();
      expect(account->live().total == before + arriving, "held");
      pending = {};
      expect(account->live().total == before, "freed when released");
    };
    CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, body));
  });
}

TEST_CASE("the owner may change its tensor after wait(), and readers never see that") {
  on_all_backends(
      [](World& world) {
        const auto group = everyone(world);
        std::minstd_rand random(world.rank() + 1);
        for (int round = 0; round < 30; ++round) {
          const int root = round % world.size();
          const at::Tensor mine = whole_numbers({50, 50}, at::kFloat, round, world.rank());
          auto [x, pending] = shared(*group, mine, root);
          pending.wait();
          if (world.rank() == root) {
            mine.fill_(-99);
          } else {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
            expect_equal(x, whole_numbers({50, 50}, at::kFloat, round, root), "what is held");
          }
        }
      },
      2);
}

TEST_CASE("where ranks share memory, the owner's wait lasts until every reader has released") {
  where_memory_is(/*shared=*/true, [](const ContractBackend& backend, int num_ranks) {
    std::atomic<int> num_released{0};  // these backends run ranks as threads
    const auto body = [&](World& world) {
      const auto group = everyone(world);
      auto [x, pending] = shared(*group, at::ones({1000}), 0);
      pending.wait();
      if (world.rank() == 0) {
        expect(num_released == world.size() - 1, "the owner's wait returned before the last reader released");
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(5 * world.rank()));
        ++num_released;
      }
    };
    CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, body));
  });
}

TEST_CASE("many loans are held at once and released in any order, some never waited for") {
  on_all_backends([](World& world) {
    const auto group = everyone(world);
    std::minstd_rand random(world.rank() + 1);
    const auto values = [](int seed, int rank) { return whole_numbers({20}, at::kFloat, seed, rank); };
    std::vector<std::pair<at::Tensor, Pending>> all;
    for (int number = 0; number < 60; ++number) {
      all.push_back(shared(*group, values(number, world.rank()), number % world.size()));
    }
    const auto owns = [&](int number) { return number % world.size() == world.rank(); };
    std::vector<int> order;
    for (int number = 0; number < 60; ++number) {
      if (!owns(number) && number % 7 != 0) all[number].second.wait();
      if (!owns(number)) order.push_back(number);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const int number : order) {
      if (number % 7 != 0) expect_equal(all[number].first, values(number, number % world.size()), "a value held");
      all[number].second = {};
      expect(!has_memory(all[number].first), "released");
    }
    for (int number = 0; number < 60; ++number) all[number].second.wait();
  });
}

TEST_CASE("what was borrowed may be lent on, and a chain is let go from its end") {
  on_all_backends(
      [](World& world) {
        const auto group = everyone(world);
        const int last = world.size() - 1;
        const at::Tensor values = whole_numbers({500}, at::kFloat, 1, 0);
        at::Tensor x = world.rank() == 0 ? values.clone() : reader(values);
        Pending held, lent;
        if (world.rank() > 0) {
          held = group->borrow(x, world.rank() - 1, kPurpose);
          held.wait();
        }
        if (world.rank() < last) lent = group->lend(x, world.rank() + 1, kPurpose);
        expect_equal(x, values, "what came down the chain");
        lent.wait();
        held = {};
      },
      2);
}

TEST_CASE("lent bytes are booked like those of a broadcast, a send and its receive") {
  on_all_backends([](World& world) {
    const auto group = everyone(world);
    const at::Tensor mine = at::zeros({240}, at::kFloat);
    auto [x, pending] = shared(*group, mine, 0);
    pending.wait();
    pending = {};
    if (world.size() > 1 && world.rank() == 0) group->lend(mine, 1, kPurpose).wait();
    if (world.rank() == 1) group->borrow(reader(mine), 0, kPurpose).wait();
    const auto rows = world.ledger().rows();
    const bool moves_more = world.size() > 1 && world.rank() < 2;
    expect(rows.size() == (world.size() == 1 ? 0u : moves_more ? 2u : 1u), "rows");
    for (const LedgerRow& row : rows) {
      const Bytes message = mine.nbytes();
      expect(
          row.kind == Collective::Broadcast || row.kind == (world.rank() == 0 ? Collective::Send : Collective::Receive),
          "kind");
      expect(row.logical == collective_cost(row.kind, Algorithm::Direct, world.size(), message).sent, "logical bytes");
    }
  });
}

TEST_CASE("the flight recorder and a mismatch call lending by its name") {
  for (const ContractBackend& backend : contract_backends()) {
    CAPTURE(backend.name);
    const auto body = [&](World& world) {
      const auto group = everyone(world);
      shared(*group, at::ones({8}), 0).second.wait();
      expect(world.recorder().to_string().find("share over data for weights, 8 float32") != std::string::npos,
             world.recorder().to_string());
      if (!backend.compares_calls) return;
      try {
        at::Tensor x = at::ones({8});
        if (world.rank() == 0) group->share(x, 0, kPurpose).wait();
        if (world.rank() == 1) group->broadcast(x, 0, kPurpose).wait();
      } catch (const UsageError& error) {
        const std::string text = error.what();
        expect(text.find("share of 8 float32") != std::string::npos, text);
        expect(text.find("broadcast of 8 float32") != std::string::npos, text);
        return;
      }
      expect(false, "a UsageError was expected");
    };
    CHECK_NOTHROW(backend.run({.num_ranks = 2}, body));
  }
}

TEST_CASE("tensors that cannot be lent or borrowed are refused") {
  for (const ContractBackend& backend : contract_backends()) {
    CAPTURE(backend.name);
    const auto says = [&](const std::string& part, const std::function<void(Communicator&)>& call) {
      const std::string text = refusal(backend, call);
      CAPTURE(text);
      CHECK(text.find("[comm] rank 0: ") == 0);
      CHECK(text.find(part) != std::string::npos);
    };
    const at::Tensor square = at::ones({4, 4});
    says("share over data: x is not contiguous", [&](Communicator& c) { (void)c.share(square.t(), 0, kPurpose); });
    says("lend over data: x is not contiguous", [&](Communicator& c) { (void)c.lend(square.t(), 1, kPurpose); });
    says("share over data: x has memory", [&](Communicator& c) { (void)c.share(square.clone(), 1, kPurpose); });
    says("borrow over data: x has memory or is part of a tensor", [&](Communicator& c) {
      (void)c.borrow(without_memory({4, 4}, at::kFloat).narrow(0, 0, 2), 1, kPurpose);
    });
    says("lend over data: x has no memory",
         [&](Communicator& c) { (void)c.lend(without_memory({4}, at::kFloat), 1, kPurpose); });
    says("this rank itself", [&](Communicator& c) { (void)c.lend(square, 0, kPurpose); });
    says("peer or root 2", [&](Communicator& c) { (void)c.share(square, 2, kPurpose); });
  }
}

TEST_CASE("when a rank throws that holds and lends, its peers are told and finish what they hold") {
  for (const ContractBackend& backend : contract_backends()) {
    for (const int num_ranks : backend.rank_counts) {
      if (num_ranks < 2) continue;
      CAPTURE(backend.name);
      CAPTURE(num_ranks);
      const auto begin = std::chrono::steady_clock::now();
      const auto body = [](World& world) {
        const auto group = everyone(world);
        const auto values = [](int rank) { return whole_numbers({2000}, at::kFloat, 5, rank); };
        const int victim = world.size() - 1;
        std::vector<std::pair<at::Tensor, Pending>> all;
        for (int root = 0; root < world.size(); ++root) {
          // Whoever lends has no other reference: the memory lives because somebody reads it.
          all.push_back(shared(*group, values(world.rank()), root));
        }
        for (int root = 0; root < world.size(); ++root) {
          if (root != world.rank()) all[root].second.wait();
        }
        group->barrier();
        if (world.rank() == victim) throw CheckFailed("the loss is not finite.");
        const std::string text = comm_error_of([&] { group->barrier(); });
        expect(text.find(cat("rank ", victim, " failed")) != std::string::npos, text);
        for (int root = 0; root < world.size(); ++root) {
          if (root == world.rank()) continue;
          expect_equal(all[root].first, values(root), "what is held when its owner, or another, has failed");
          all[root].second = {};
        }
      };
      CHECK_THROWS_WITH_AS(backend.run({.num_ranks = num_ranks}, body), "the loss is not finite.", CheckFailed);
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    }
  }
}

TEST_CASE("a late borrower is named when the deadline has passed") {
  for (const ContractBackend& backend : contract_backends()) {
    CAPTURE(backend.name);
    const auto body = [](World& world) {
      const auto group = everyone(world);
      at::Tensor x = at::ones({10});
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      const std::string text = comm_error_of(
          [&] { (world.rank() == 0 ? group->lend(x, 1, kPurpose) : group->borrow(reader(x), 0, kPurpose)).wait(); });
      expect(text.find("lend #1 over data to rank 1") != std::string::npos, text);
      expect(text.find(" s for rank 1") != std::string::npos, text);
    };
    CHECK_NOTHROW(backend.run({.num_ranks = 2, .deadline = std::chrono::milliseconds(200)}, body));
  }
}

TEST_CASE("on one rank sharing is the identity") {
  for (const ContractBackend& backend : contract_backends()) {
    CAPTURE(backend.name);
    CHECK_NOTHROW(backend.run({.num_ranks = 1}, [](World& world) {
      const auto group = everyone(world);
      const at::Tensor x = at::ones({3});
      Pending pending = group->share(x, 0, kPurpose);
      pending.wait();
      expect(!pending.holds_memory() && has_memory(x) && x[2].item<float>() == 1, "x is as it was");
    }));
  }
}

}  // namespace
}  // namespace octavo
