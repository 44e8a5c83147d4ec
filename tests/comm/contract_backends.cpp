#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "comm/contract.h"
#include "comm/forked_ranks.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/emulated_world.h"
#include "octavo/comm/run_ranks.h"

namespace octavo {

const std::vector<ContractBackend>& contract_backends() {
  static const std::vector<ContractBackend> backends = {
      {.name = "threads",
       .run =
           [](const ContractRun& run, const std::function<void(World&)>& body) {
             run_ranks({.num_ranks = run.num_ranks, .deadline = run.deadline}, body);
           },
       .rank_counts = {1, 2, 3, 4},
       .dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong},
       .compares_calls = true,
       .shares_memory = true},
      {.name = "threads, emulated link",
       .run =
           [](const ContractRun& run, const std::function<void(World&)>& body) {
             run_ranks({.num_ranks = run.num_ranks, .deadline = run.deadline}, [&](World& inner) {
               const auto world = make_emulated_world(inner, parse_link("20GB/s,2us"));
               body(*world);
             });
           },
       .rank_counts = {1, 2, 4},
       .dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong},
       .compares_calls = true,
       .shares_memory = true},
      {.name = "gloo",
       .run =
           [](const ContractRun& run, const std::function<void(World&)>& body) {
             run_forked_or_throw({.num_ranks = run.num_ranks, .deadline = run.deadline}, body);
           },
       .rank_counts = {1, 2, 3, 4},
       .dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong},
       .compares_calls = false,
       .shares_memory = false},
      {.name = "gloo, calls compared",
       .run =
           [](const ContractRun& run, const std::function<void(World&)>& body) {
             run_forked_or_throw({.num_ranks = run.num_ranks, .deadline = run.deadline, .check_calls = true}, body);
           },
       .rank_counts = {1, 2, 4},
       .dtypes = {at::kFloat},
       .compares_calls = true,
       .shares_memory = false},
  };
  return backends;
}

void on_all_backends(const std::function<void(World&)>& body, int min_ranks) {
  for (const ContractBackend& backend : contract_backends()) {
    for (const int num_ranks : backend.rank_counts) {
      if (num_ranks < min_ranks) continue;
      CAPTURE(backend.name);
      CAPTURE(num_ranks);
      CHECK_NOTHROW(backend.run({.num_ranks = num_ranks}, body));
    }
  }
}

void expect(bool holds, const std::string& what) {
  internal_check(holds, what);
}

std::string comm_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CommError& error) {
    return error.what();
  }
  throw InternalError("a CommError was expected, none was thrown");
}

std::string refusal(const ContractBackend& backend, const std::function<void(Communicator&)>& call) {
  std::string text;
  try {
    backend.run({.num_ranks = 2}, [&](World& world) {
      const auto group = everyone(world);
      if (world.rank() == 0) call(*group);
    });
  } catch (const UsageError& error) {
    text = error.what();
  }
  return text;
}

std::unique_ptr<Communicator> everyone(World& world) {
  const std::vector axes = {Axis::Data};
  return world.split(DeviceMesh({{Axis::Data, world.size()}}), axes);
}

at::Tensor whole_numbers(at::IntArrayRef sizes, at::ScalarType dtype, int seed, int rank) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor numbers = at::arange(count, at::kLong).mul(7 + seed).add(13 * rank).remainder(31).sub(15);
  return numbers.to(dtype).reshape(sizes);
}

}  // namespace octavo
