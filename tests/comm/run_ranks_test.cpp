#include "octavo/comm/run_ranks.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "octavo/base/error.h"

namespace octavo {
namespace {

std::unique_ptr<Communicator> all_ranks(World& world) {
  return world.split(DeviceMesh({{Axis::Tensor, world.size()}}), std::vector{Axis::Tensor});
}

TEST_CASE("a rank's thread has gradients off, denormals flushed and its own number of threads") {
  std::atomic<int> right{0};
  run_ranks({.num_ranks = 3, .threads_per_rank = 1}, [&](World& world) {
    const at::Tensor denormal = at::full({16}, 1e-40, at::kFloat);
    const bool flushed = denormal.mul(1.5).count_nonzero().item<std::int64_t>() == 0;
    right += !c10::GradMode::is_enabled() && flushed && at::get_num_threads() == 1 && world.backend() == "threads";
  });
  CHECK(right == 3);
  CHECK(c10::GradMode::is_enabled());
}

TEST_CASE("every rank has its number and its own ledger") {
  std::atomic<int> seen{0};
  run_ranks({.num_ranks = 3}, [&](World& world) {
    seen += 1 << (8 * world.rank());
    CHECK(world.size() == 3);
    const auto group = all_ranks(world);
    group->all_reduce(at::ones({4}), Purpose::Loss).wait();
    REQUIRE(world.ledger().rows().size() == 1);
    CHECK(world.ledger().rows()[0].count == 1);
  });
  CHECK(seen == 0x010101);
}

TEST_CASE("ranks need at least one thread each") {
  CHECK_THROWS_AS(run_ranks({.num_ranks = 0}, [](World&) {}), UsageError);
  CHECK_THROWS_AS(run_ranks({.num_ranks = 1, .threads_per_rank = 0}, [](World&) {}), UsageError);
}

TEST_CASE("a tensor that is not on the CPU is refused") {
  const auto body = [](World& world) {
    (void)all_ranks(world)->all_reduce(at::ones({4}, at::device(at::kMeta)), Purpose::Loss);
  };
  CHECK_THROWS_AS(run_ranks({.num_ranks = 1}, body), UsageError);
}

TEST_CASE("a written tensor tells autograd so, an unwritten one does not") {
  run_ranks({.num_ranks = 2}, [](World& world) {
    const auto group = all_ranks(world);
    at::Tensor reduced = at::ones({4}), sent = at::ones({4});
    const auto before = reduced._version();
    group->all_reduce(reduced, Purpose::Loss).wait();
    CHECK(reduced._version() > before);
    const auto sent_before = sent._version();
    group->broadcast(sent, 0, Purpose::Loss).wait();
    CHECK((sent._version() > sent_before) == (world.rank() == 1));
  });
}

TEST_CASE("waiting is booked on the rank that waited") {
  run_ranks({.num_ranks = 2}, [](World& world) {
    const auto group = all_ranks(world);
    group->barrier();
    world.ledger().reset();
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    group->all_reduce(at::ones({4}), Purpose::Gradients).wait();
    const LedgerRow row = world.ledger().rows()[0];
    if (world.rank() == 0) {
      CHECK(row.waited > 0.15);
      CHECK(row.skew > 0.15);  // the peer was late: skew, not exposed communication
    } else {
      CHECK(row.waited < 0.15);
    }
  });
}

}  // namespace
}  // namespace octavo
