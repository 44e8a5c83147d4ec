#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <map>
#include <mutex>

#include "comm/contract.h"
#include "comm/forked_ranks.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/record/record_world.h"
#include "octavo/comm/run_ranks.h"
#include "octavo/comm/without_memory.h"
#include "octavo/memory/account.h"

namespace octavo {
namespace {

/// A bit of everything over two axes of a 2 x 2 mesh.
void exercise(World& world, const at::TensorOptions& options) {
  const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Fold, 2}});
  const auto data = world.split(mesh, std::vector{Axis::Data});
  const auto fold = world.split(mesh, std::vector{Axis::Fold});
  const auto none = world.split(mesh, std::vector{Axis::Tensor});
  at::Tensor x = at::zeros({7, 13}, options), whole = at::zeros({2, 50}, options);
  data->all_reduce(x, Purpose::Gradients).wait();
  data->all_reduce(x.t(), Purpose::Norm).wait();
  none->all_reduce(x, Purpose::Norm).wait();
  fold->broadcast(x, 1, Purpose::Weights).wait();
  fold->reduce(x, 0, Purpose::Gradients).wait();
  fold->reduce_scatter(whole[fold->index()], whole, Purpose::KeysValues).wait();
  fold->all_gather(whole, whole[fold->index()], Purpose::KeysValues).wait();
  fold->all_to_all(at::empty_like(whole), whole, Purpose::Activations).wait();
  Pending sent = fold->send(x, 1 - fold->index(), Purpose::Weights);
  Pending received = fold->recv(at::empty_like(x), 1 - fold->index(), Purpose::Weights);
  sent.wait();
  received.wait();
  const auto shared = [&](int root) {
    const bool owns = fold->index() == root;
    return fold->share(owns ? x : without_memory({7, 13}, options), root, Purpose::Weights);
  };
  for (const int root : {0, 1}) shared(root).wait();
  Pending lent = fold->lend(x, 1 - fold->index(), Purpose::Weights);
  fold->borrow(without_memory({7, 13}, options), 1 - fold->index(), Purpose::Weights).wait();
  lent.wait();
  data->barrier();
}

void check_same_rows(const std::vector<LedgerRow>& recorded, const std::vector<LedgerRow>& measured) {
  REQUIRE(recorded.size() == measured.size());
  for (std::size_t index = 0; index < recorded.size(); ++index) {
    CHECK(recorded[index].group == measured[index].group);
    CHECK(recorded[index].purpose == measured[index].purpose);
    CHECK(recorded[index].kind == measured[index].kind);
    CHECK(recorded[index].count == measured[index].count);
    CHECK(recorded[index].logical == measured[index].logical);
    CHECK(recorded[index].copied == measured[index].copied);
    CHECK(recorded[index].waited == 0);
  }
}

TEST_CASE("a recorded rank books what the same rank books on threads, also on meta tensors") {
  std::map<int, std::vector<LedgerRow>> measured;
  std::mutex mutex;
  run_ranks({.num_ranks = 4}, [&](World& world) {
    exercise(world, at::kBFloat16);
    const std::lock_guard lock(mutex);
    measured[world.rank()] = world.ledger().rows();
  });
  for (int rank = 0; rank < 4; ++rank) {
    for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
      const auto world = make_record_world(rank, 4);
      exercise(*world, at::TensorOptions(at::kBFloat16).device(device));
      check_same_rows(world->ledger().rows(), measured[rank]);
    }
  }
}

TEST_CASE("a recorded rank books what the same rank books on gloo, and has the same peak of memory") {
  const auto peak_of = [](World& world) {
    const AccountHandle account = MemoryAccount::create();
    const ChargeTo charge(account.get());
    exercise(world, at::kFloat);
    const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Fold, 2}});
    const auto all = world.split(mesh, std::vector{Axis::Data, Axis::Fold});
    at::Tensor x = at::zeros({100'000});
    Pending first = all->all_reduce(x, Purpose::Gradients);
    Pending second = all->broadcast(at::zeros({50'000}), 1, Purpose::Weights);
    // Held beside the scratch of the first: its readers have a higher peak than its owner.
    Pending held = all->share(all->index() == 1 ? x : without_memory({100'000}, at::kFloat), 1, Purpose::Weights);
    first.wait();
    second.wait();
    held.wait();
    all->reduce(x, 0, Purpose::Gradients).wait();
    held = {};
    all->reduce(x, 2, Purpose::Gradients).wait();
    return account->peak();
  };
  run_forked_or_throw({.num_ranks = 4}, [&](World& world) {
    install_tracking_allocator();
    const MemorySnapshot measured = peak_of(world);
    const auto record = make_record_world(world.rank(), 4, Backend::Gloo);
    const MemorySnapshot recorded = peak_of(*record);
    expect(measured.total == recorded.total, cat("peak of ", measured.total, " and ", recorded.total));
    expect(measured.by_category == recorded.by_category, "peak by category");
    expect(
        measured.by_category[static_cast<int>(MemoryCategory::Communication)] > (world.rank() == 1 ? 290'000 : 690'000),
        "scratch is charged, and what lent values arrive in");
    const auto rows = world.ledger().rows(), predicted = record->ledger().rows();
    expect(rows.size() == predicted.size(), "rows");
    for (std::size_t index = 0; index < rows.size(); ++index) {
      expect(rows[index].kind == predicted[index].kind && rows[index].count == predicted[index].count, "the same row");
      expect(rows[index].logical == predicted[index].logical, "logical bytes");
      expect(rows[index].copied == predicted[index].copied, cat("copied in ", collective_name(rows[index].kind)));
    }
  });
}

TEST_CASE("a recorded reader of lent memory gets none where ranks share theirs, and its own where they do not") {
  const AccountHandle account = MemoryAccount::create();
  install_tracking_allocator();
  const ChargeTo charge(account.get());
  const auto world_of = [](Backend backend) { return make_record_world(1, 3, backend); };
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
    for (const Backend backend : {Backend::Threads, Backend::Gloo}) {
      const auto world = world_of(backend);
      const auto group = everyone(*world);
      CHECK(group->shares_memory() == (backend == Backend::Threads));
      const at::Tensor x = without_memory({50, 20}, at::TensorOptions(at::kFloat).device(device));
      const Bytes before = account->live().total, arriving = backend == Backend::Gloo ? 4000 : 0;
      Pending shared = group->share(x, 0, Purpose::Weights);
      CHECK(account->live().total - before == arriving);
      shared.wait();
      CHECK(account->live().total - before == arriving);
      shared = {};
      CHECK(account->live().total == before);
      const Pending dropped = group->borrow(x, 2, Purpose::Weights);
      CHECK(account->live().by_category[static_cast<int>(MemoryCategory::Communication)] == arriving);
    }
  }
}

TEST_CASE("a recorded operation touches no values and holds its tensors until it is waited for") {
  const auto world = make_record_world(1, 2);
  const auto group = world->split(DeviceMesh({{Axis::Data, 2}}), std::vector{Axis::Data});
  at::Tensor x = at::ones({8});
  Pending pending = group->all_reduce(x, Purpose::Loss);
  CHECK(x.use_count() > 1);
  pending.wait();
  CHECK(x.use_count() == 1);
  CHECK(at::equal(x, at::ones({8})));
  at::Tensor columns = at::ones({4, 4}).t();
  group->all_reduce(columns, Purpose::Loss).wait();
  CHECK(at::equal(columns, at::ones({4, 4})));
}

TEST_CASE("a record world may have any size") {
  const auto world = make_record_world(99'999, 100'000);
  const auto group = world->split(DeviceMesh({{Axis::Data, 25'000}, {Axis::Tensor, 4}}), std::vector{Axis::Data});
  CHECK(group->size() == 25'000);
  CHECK(group->index() == 24'999);
  CHECK(world->backend() == "record");
  CHECK_THROWS_AS(make_record_world(2, 2), UsageError);
}

TEST_CASE("a record world refuses what threads refuse") {
  const auto world = make_record_world(0, 2);
  const auto group = world->split(DeviceMesh({{Axis::Data, 2}}), std::vector{Axis::Data});
  const auto meta = at::device(at::kMeta);
  CHECK_THROWS_AS((void)group->all_gather(at::empty({10}, meta), at::empty({4}, meta), Purpose::Weights), UsageError);
  const at::Tensor whole = at::empty({10}, meta);
  CHECK_THROWS_AS((void)group->all_gather(whole, whole.narrow(0, 5, 5), Purpose::Weights), UsageError);
  CHECK_THROWS_AS((void)world->split(DeviceMesh({{Axis::Data, 3}}), std::vector{Axis::Data}), UsageError);
}

}  // namespace
}  // namespace octavo
