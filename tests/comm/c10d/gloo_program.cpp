// One rank of a job that a launcher started; the scripts in this folder start it in all ways.
//
//   gloo_program sum         rank 0 prints the launcher, the ranks and their sum
//   gloo_program loop        all_reduces until it fails; rank 0 prints "running" after the first
//   gloo_program bytes       known collectives; rank 0 prints the bytes that the ledgers of all ranks booked as copied
//
// Exit codes as octavo's: 0 fine, 2 usage, 3 a rank was lost.
#include <ATen/ATen.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/gather_bytes.h"
#include "octavo/comm/run_process.h"

namespace octavo {
namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::unique_ptr<Communicator> everyone(World& world) {
  return world.split(DeviceMesh({{Axis::Data, world.size()}}), std::vector{Axis::Data});
}

void sum(World& world, const std::string& launcher) {
  const auto group = everyone(world);
  at::Tensor x = at::full({100'000}, world.rank() + 1);
  group->all_reduce(x, Purpose::Loss).wait();
  const auto names = gather_bytes(*group, cat("rank ", world.rank()), 0);
  if (world.rank() != 0) return;
  std::cout << launcher << ": " << join(names, ", ") << "; sum " << x[99'999].item<std::int64_t>() << std::endl;
}

void loop(World& world) {
  const auto group = everyone(world);
  at::Tensor x = at::ones({1'000'000});
  for (std::int64_t step = 0;; ++step) {
    world.set_step(step);
    group->all_reduce(x, Purpose::Gradients).wait();
    if (step == 0 && world.rank() == 0) std::cout << "running" << std::endl;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void bytes(World& world) {
  const auto group = everyone(world);
  const int num_ranks = world.size();
  at::Tensor x = at::ones({num_ranks * 1'000'000}), y = at::empty_like(x);
  at::Tensor part = x.chunk(num_ranks)[world.rank()];
  for (int round = 0; round < 3; ++round) {
    group->all_reduce(x, Purpose::Gradients).wait();
    group->reduce_scatter(part, x, Purpose::Gradients).wait();
    group->all_gather(x, part, Purpose::Weights).wait();
    group->broadcast(x, 0, Purpose::Weights).wait();
    group->reduce(x, 0, Purpose::Gradients).wait();
    group->all_to_all(y, x, Purpose::Activations).wait();
    if (world.rank() == 0) group->send(x, 1, Purpose::Activations).wait();
    if (world.rank() == 1) group->recv(x, 0, Purpose::Activations).wait();
  }
  Bytes copied = 0;
  for (const LedgerRow& row : world.ledger().rows()) copied += row.copied;
  Bytes total = 0;
  for (const std::string& one : gather_bytes(*group, cat(copied), 0)) total += std::strtoll(one.c_str(), nullptr, 10);
  if (world.rank() == 0) std::cout << total << std::endl;
}

int run(const std::string& mode) {
  try {
    const std::optional<Launch> launch = read_launch(environment);
    if (!launch) throw UsageError("[test] no launcher's variables are set.");
    const auto deadline = std::chrono::seconds(std::atoi(environment("DEADLINE").value_or("30").c_str()));
    run_process({.launch = *launch, .deadline = deadline}, [&](World& world) {
      if (mode == "sum") sum(world, launch->launcher);
      if (mode == "loop") loop(world);
      if (mode == "bytes") bytes(world);
    });
    return 0;
  } catch (const UsageError& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  } catch (const CommError& error) {
    std::cerr << error.what() << std::endl << error.report();
    return 3;
  }
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  const int code = octavo::run(argc > 1 ? argv[1] : "sum");
  std::_Exit(code);
}
