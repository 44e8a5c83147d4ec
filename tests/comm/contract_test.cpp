// What the collectives compute, on every backend. See contract.h.
#include "comm/contract.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "octavo/base/text.h"
#include "octavo/comm/gather_bytes.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

constexpr Purpose kPurpose = Purpose::Activations;

void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(at::equal(got, wanted), what);
}

/// Runs `body` on every backend at every number of ranks that it supports, for every dtype of the backend.
void on_all_dtypes(const std::function<void(World&, at::ScalarType)>& body) {
  for (const ContractBackend& backend : contract_backends()) {
    for (const int num_ranks : backend.rank_counts) {
      for (const at::ScalarType dtype : backend.dtypes) {
        CAPTURE(backend.name);
        CAPTURE(num_ranks);
        CAPTURE(c10::toString(dtype));
        CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, [&](World& world) { body(world, dtype); }));
      }
    }
  }
}

at::Tensor sum_over_ranks(at::IntArrayRef sizes, at::ScalarType dtype, int seed, int num_ranks) {
  at::Tensor sum = at::zeros(sizes, at::kDouble);
  for (int rank = 0; rank < num_ranks; ++rank) sum += whole_numbers(sizes, at::kDouble, seed, rank);
  return sum.to(dtype);
}

/// Tensors of these sizes with the elements of `like`: contiguous, or every second column of a wider one.
at::Tensor laid_out(const at::Tensor& like, bool contiguous) {
  if (contiguous) return like.clone();
  at::Tensor wide = at::full({like.size(0), 2 * like.size(1)}, -99, like.options());
  at::Tensor view = wide.slice(1, 0, 2 * like.size(1), 2);
  view.copy_(like);
  return view;
}

// Rows by columns: empty, a single element, fewer elements than ranks, uneven, large.
const std::vector<std::pair<int, int>> kShapes = {{0, 3}, {1, 1}, {1, 3}, {7, 5}, {64, 33}};

TEST_CASE("all_reduce gives every rank the sum") {
  on_all_dtypes([](World& world, at::ScalarType dtype) {
    const auto group = everyone(world);
    for (const auto& [rows, columns] : kShapes) {
      for (const bool contiguous : {true, false}) {
        at::Tensor x = laid_out(whole_numbers({rows, columns}, dtype, 1, world.rank()), contiguous);
        group->all_reduce(x, kPurpose).wait();
        expect_equal(x, sum_over_ranks({rows, columns}, dtype, 1, world.size()), cat("sum of ", rows, "x", columns));
      }
    }
  });
}

TEST_CASE("reduce gives the root the sum and leaves the others their values") {
  on_all_dtypes([](World& world, at::ScalarType dtype) {
    const auto group = everyone(world);
    for (const auto& [rows, columns] : kShapes) {
      for (int root = 0; root < world.size(); ++root) {
        const at::Tensor mine = whole_numbers({rows, columns}, dtype, 2, world.rank());
        at::Tensor x = laid_out(mine, root % 2 == 0);
        group->reduce(x, root, kPurpose).wait();
        const at::Tensor sum = sum_over_ranks({rows, columns}, dtype, 2, world.size());
        expect_equal(x, world.rank() == root ? sum : mine, "x after reduce");
      }
    }
  });
}

TEST_CASE("broadcast gives every rank the root's values") {
  on_all_dtypes([](World& world, at::ScalarType dtype) {
    const auto group = everyone(world);
    for (const auto& [rows, columns] : kShapes) {
      for (int root = 0; root < world.size(); ++root) {
        at::Tensor x = laid_out(whole_numbers({rows, columns}, dtype, 3, world.rank()), (root + world.rank()) % 2 == 0);
        group->broadcast(x, root, kPurpose).wait();
        expect_equal(x, whole_numbers({rows, columns}, dtype, 3, root), "x after broadcast");
      }
    }
  });
}

TEST_CASE("reduce_scatter, all_gather and all_to_all place part after part by rank") {
  on_all_dtypes([](World& world, at::ScalarType dtype) {
    const auto group = everyone(world);
    const int num_ranks = world.size(), here = world.rank();
    for (const auto& [rows, columns] : kShapes) {
      for (const bool contiguous : {true, false}) {
        const auto place = [&](const at::Tensor& tensor) { return laid_out(tensor, contiguous); };
        const at::Tensor whole = whole_numbers({num_ranks * rows, columns}, dtype, 4, here);
        const at::Tensor part = whole_numbers({rows, columns}, dtype, 5, here);
        at::Tensor scattered = place(at::zeros_like(part)), gathered = place(at::zeros_like(whole)),
                   exchanged = place(at::zeros_like(whole));
        group->reduce_scatter(scattered, place(whole), kPurpose).wait();
        group->all_gather(gathered, place(part), kPurpose).wait();
        group->all_to_all(exchanged, place(whole), kPurpose).wait();
        const at::Tensor sum = sum_over_ranks({num_ranks * rows, columns}, dtype, 4, num_ranks);
        expect_equal(scattered, sum.narrow(0, here * rows, rows), "reduce_scatter");
        for (int peer = 0; peer < num_ranks; ++peer) {
          const at::Tensor theirs = whole_numbers({num_ranks * rows, columns}, dtype, 4, peer);
          expect_equal(gathered.narrow(0, peer * rows, rows), whole_numbers({rows, columns}, dtype, 5, peer),
                       "all_gather");
          expect_equal(exchanged.narrow(0, peer * rows, rows), theirs.narrow(0, here * rows, rows), "all_to_all");
        }
      }
    }
  });
}

TEST_CASE("reduce_scatter and all_gather work inside one tensor") {
  on_all_dtypes([](World& world, at::ScalarType dtype) {
    const auto group = everyone(world);
    const int num_ranks = world.size(), here = world.rank();
    const at::Tensor mine = whole_numbers({num_ranks, 10}, dtype, 6, here);
    at::Tensor x = mine.clone();
    group->reduce_scatter(x[here], x, kPurpose).wait();
    const at::Tensor sum = sum_over_ranks({num_ranks, 10}, dtype, 6, num_ranks);
    for (int part = 0; part < num_ranks; ++part) {
      expect_equal(x[part], part == here ? sum[part] : mine[part], "x after reduce_scatter into its own part");
    }
    group->all_gather(x, x[here], kPurpose).wait();
    expect_equal(x, sum, "x after all_gather from its own part");
  });
}

TEST_CASE("sends meet receives in order, in a ring and against it") {
  on_all_backends(
      [](World& world) {
        const auto group = everyone(world);
        const int num_ranks = world.size(), here = world.rank();
        const int next = (here + 1) % num_ranks, previous = (here + num_ranks - 1) % num_ranks;
        std::vector<at::Tensor> received;
        std::vector<Pending> pending;
        for (int round = 0; round < 20; ++round) {
          const at::Tensor sent = laid_out(whole_numbers({3, 4}, at::kFloat, round, here), round % 2 == 0);
          received.push_back(laid_out(at::zeros({3, 4}), round % 3 == 0));
          pending.push_back(group->send(sent, round % 5 == 0 ? previous : next, kPurpose));
          pending.push_back(group->recv(received.back(), round % 5 == 0 ? next : previous, kPurpose));
        }
        for (auto& one : pending) one.wait();
        for (int round = 0; round < 20; ++round) {
          expect_equal(received[round], whole_numbers({3, 4}, at::kFloat, round, round % 5 == 0 ? next : previous),
                       cat("round ", round));
        }
      },
      2);
}

TEST_CASE("operations in flight may be waited for in any order, dropped, and delayed") {
  on_all_backends([](World& world) {
    const auto group = everyone(world);
    for (int seed = 0; seed < 5; ++seed) {
      std::minstd_rand random(100 * seed + world.rank() + 1);
      std::vector<at::Tensor> sums;
      std::vector<Pending> pending;
      for (int operation = 0; operation < 30; ++operation) {
        sums.push_back(laid_out(whole_numbers({5, 9}, at::kFloat, operation, world.rank()), operation % 2 == 0));
        pending.push_back(group->all_reduce(sums.back(), kPurpose));
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      }
      std::shuffle(pending.begin(), pending.end(), random);
      for (std::size_t index = 0; index < 20; ++index) pending[index].wait();
      pending.clear();
      for (int operation = 0; operation < 30; ++operation) {
        expect_equal(sums[operation], sum_over_ranks({5, 9}, at::kFloat, operation, world.size()), "a sum in flight");
      }
    }
  });
}

TEST_CASE("two axes of a mesh are in flight at once") {
  on_all_backends(
      [](World& world) {
        if (world.size() != 4) return;
        const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Tensor, 2}});
        const auto data = world.split(mesh, std::vector{Axis::Data});
        const auto tensor = world.split(mesh, std::vector{Axis::Tensor});
        const auto both = world.split(mesh, std::vector{Axis::Data, Axis::Tensor});
        expect(data->size() == 2 && tensor->size() == 2 && both->size() == 4, "sizes");
        expect(data->name() == "data" && both->name() == "data+tensor", "names");
        for (int round = 0; round < 20; ++round) {
          at::Tensor x = at::full({100}, world.rank(), at::kFloat), y = x.clone(), z = x.clone();
          Pending over_data = data->all_reduce(x, kPurpose);
          Pending over_tensor = tensor->all_reduce(y, kPurpose);
          Pending over_both = both->all_reduce(z, kPurpose);
          Pending* order[] = {&over_data, &over_tensor, &over_both};
          for (int step = 0; step < 3; ++step) order[(step + world.rank()) % 3]->wait();
          expect_equal(x, at::full({100}, 2 * tensor->index() + 2, at::kFloat), "over data");
          expect_equal(y, at::full({100}, 4 * data->index() + 1, at::kFloat), "over tensor");
          expect_equal(z, at::full({100}, 6, at::kFloat), "over both");
        }
      },
      4);
}

TEST_CASE("the same sums twice have the same bits, on every rank") {
  on_all_dtypes([](World& world, at::ScalarType dtype) {
    const auto group = everyone(world);
    // Addends of very different size: another order of summation gives other bits.
    const at::Tensor mine =
        whole_numbers({999}, at::kDouble, 3, world.rank()).div(7).mul(1 << (5 * world.rank())).to(dtype);
    at::Tensor first = mine.clone(), second = mine.clone();
    group->all_reduce(first, kPurpose).wait();
    group->all_reduce(second, kPurpose).wait();
    expect_equal(first, second, "the second sum");
    at::Tensor all = at::empty({world.size(), 999}, mine.options());
    group->all_gather(all, first, kPurpose).wait();
    for (int peer = 0; peer < world.size(); ++peer) expect_equal(all[peer], first, "a peer's sum");
  });
}

TEST_CASE("bfloat16 is summed in float32, rank after rank, and rounded once") {
  on_all_backends([](World& world) {
    const auto group = everyone(world);
    const auto addend = [](int rank) { return whole_numbers({500}, at::kFloat, 8, rank).div(3).to(at::kBFloat16); };
    at::Tensor x = addend(world.rank());
    at::Tensor sum = addend(0).to(at::kFloat);
    for (int rank = 1; rank < world.size(); ++rank) sum += addend(rank).to(at::kFloat);
    group->all_reduce(x, kPurpose).wait();
    expect_equal(x, sum.to(at::kBFloat16), "the sum");
  });
}

TEST_CASE("the ledger holds the logical bytes of the cost formulas") {
  on_all_backends([](World& world) {
    const auto group = everyone(world);
    const int num_ranks = world.size();
    const at::Tensor whole = at::zeros({num_ranks * 30}, at::kFloat), part = at::zeros({30}, at::kFloat);
    group->all_reduce(whole.clone(), Purpose::Gradients).wait();
    group->reduce_scatter(part.clone(), whole, Purpose::Gradients).wait();
    group->all_gather(whole.clone(), part, Purpose::Weights).wait();
    group->broadcast(whole.clone(), 0, Purpose::Weights).wait();
    group->reduce(whole.clone(), 0, Purpose::Gradients).wait();
    group->all_to_all(whole.clone(), whole, Purpose::KeysValues).wait();
    group->barrier();
    const Bytes message = whole.numel() * 4;
    const auto rows = world.ledger().rows();
    expect(rows.size() == (num_ranks == 1 ? 0 : 7), "a row per kind, none for a group of one");
    for (const LedgerRow& row : rows) {
      const Bytes bytes = row.kind == Collective::Barrier ? 0 : message;
      expect(row.logical == collective_cost(row.kind, Algorithm::Ring, num_ranks, bytes).sent,
             cat("logical bytes of ", collective_name(row.kind)));
      expect(row.group == "data" && row.count == 1, "one transfer over data");
    }
  });
}

TEST_CASE("what is sent is booked by the sender") {
  on_all_backends(
      [](World& world) {
        const auto group = everyone(world);
        at::Tensor x = at::zeros({100}, at::kDouble);
        if (world.rank() == 0) group->send(x, 1, kPurpose).wait();
        if (world.rank() == 1) group->recv(x, 0, kPurpose).wait();
        expect(world.ledger().logical_bytes() == (world.rank() == 0 ? 800 : 0), "logical bytes");
      },
      2);
}

TEST_CASE("bytes of every length are gathered on one rank") {
  on_all_backends([](World& world) {
    const auto group = everyone(world);
    for (int root = 0; root < world.size(); ++root) {
      const auto text = [&](int rank) { return std::string(rank * 7 % 19, static_cast<char>('a' + rank)) + '\0'; };
      const std::string own = world.rank() == 1 ? "" : text(world.rank());
      const std::vector<std::string> all = gather_bytes(*group, own, root);
      expect(all.size() == (world.rank() == root ? world.size() : 0u), "the root has all, the others none");
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        expect(all[rank] == (rank == 1 ? "" : text(static_cast<int>(rank))), cat("the bytes of rank ", rank));
      }
    }
  });
}

}  // namespace
}  // namespace octavo
