#include "octavo/memory/account.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <thread>

#include "octavo/base/error.h"

using namespace octavo;

namespace {
AccountHandle make_account(Bytes limit = 0) {
  install_tracking_allocator();
  return MemoryAccount::create(limit);
}
}  // namespace

TEST_CASE("live bytes are the bytes of the tensors, by category") {
  const AccountHandle account = make_account();
  const ChargeTo charge(account.get());
  {
    const at::Tensor a = at::empty({1000});
    const CategoryScope scope(MemoryCategory::Weights);
    const at::Tensor b = at::empty({10}, at::kDouble);
    CHECK(account->live().total == 4080);
    CHECK(account->live().by_category[static_cast<int>(MemoryCategory::Weights)] == 80);
  }
  CHECK(account->live().total == 0);
  CHECK(account->peak().total == 4080);
  account->reset_peak();
  CHECK(account->peak().total == 0);
}

TEST_CASE("meta tensors are charged like real ones") {
  const AccountHandle account = make_account();
  const ChargeTo charge(account.get());
  const at::Tensor a = at::empty({1000, 1000}, at::TensorOptions().device(at::kMeta));
  CHECK(account->live().total == 4000000);
}

TEST_CASE("a block freed by another thread is booked to the rank that made it") {
  const AccountHandle account = make_account();
  at::Tensor tensor;
  {
    const ChargeTo charge(account.get());
    tensor = at::empty({100000});
  }
  std::thread([moved = std::move(tensor)]() mutable { moved.reset(); }).join();
  CHECK(account->live().total == 0);
}

TEST_CASE("an allocation beyond the limit is refused with a report of what is alive") {
  const AccountHandle account = make_account(10000);
  const ChargeTo charge(account.get());
  const CategoryScope scope(MemoryCategory::Gradients);
  const at::Tensor held = at::empty({2000});
  CHECK_THROWS_WITH_AS(at::empty({1000}), doctest::Contains("gradients 8.0 kB"), CheckFailed);
  CHECK(account->live().total == 8000);
  CHECK_NOTHROW(at::empty({400}));
}

TEST_CASE("a tensor may outlive the account's owner") {
  at::Tensor tensor;
  {
    const AccountHandle account = make_account();
    const ChargeTo charge(account.get());
    tensor = at::empty({100});
  }
  tensor.fill_(1);
  CHECK(tensor.sum().item<float>() == 100);
}
