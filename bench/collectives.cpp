// Collectives of rank threads against plain memcpy, measured in turn in one run.
//
//   collectives_bench [ranks] [gloo]
//
// For every operation and size: the median (and the best) time from a common start to the last rank's end; the bytes
// that the busiest rank takes from its peers, per second of that time; and the time of every rank copying as many bytes
// out of its neighbour's memory with memcpy, without waiting for anybody. Sizes are those of the whole tensor. Use as
// many free cores as ranks: a rank that shares its core waits for its peer to be scheduled, and small messages then
// cost many times more. With "gloo" the ranks are processes of this machine, and the columns of memcpy stay empty.
#include <ATen/ATen.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "octavo/base/text.h"
#include "octavo/comm/gather_bytes.h"
#include "octavo/comm/run_process.h"
#include "octavo/comm/run_ranks.h"

namespace octavo {
namespace {

struct Tensors {
  at::Tensor x;      // the whole message
  at::Tensor other;  // as large
};

struct Operation {
  const char* name;
  std::function<void(Communicator&, Tensors&)> run;
  std::function<double(int index, int num_ranks)> taken;  // share of the message that a rank takes from its peers
};

double all_but_own(int /*index*/, int num_ranks) {
  return (num_ranks - 1.0) / num_ranks;
}

std::vector<Operation> operations() {
  constexpr Purpose kPurpose = Purpose::Control;
  return {
      {"all_gather",
       [](Communicator& c, Tensors& t) { c.all_gather(t.x, t.x.chunk(c.size())[c.index()], kPurpose).wait(); },
       all_but_own},
      {"broadcast", [](Communicator& c, Tensors& t) { c.broadcast(t.x, 0, kPurpose).wait(); },
       [](int index, int) { return index == 0 ? 0.0 : 1.0; }},
      {"reduce_scatter",
       [](Communicator& c, Tensors& t) { c.reduce_scatter(t.x.chunk(c.size())[c.index()], t.x, kPurpose).wait(); },
       all_but_own},
      {"all_reduce", [](Communicator& c, Tensors& t) { c.all_reduce(t.x, kPurpose).wait(); },
       [](int, int num_ranks) { return 2 * (num_ranks - 1.0) / num_ranks; }},
      {"reduce", [](Communicator& c, Tensors& t) { c.reduce(t.x, 0, kPurpose).wait(); }, all_but_own},
      {"all_to_all", [](Communicator& c, Tensors& t) { c.all_to_all(t.other, t.x, kPurpose).wait(); }, all_but_own},
      {"ring hop",
       [](Communicator& c, Tensors& t) {
         Pending sent = c.send(t.x, (c.index() + 1) % c.size(), kPurpose);
         Pending received = c.recv(t.other, (c.index() + c.size() - 1) % c.size(), kPurpose);
         sent.wait();
         received.wait();
       },
       [](int, int) { return 1.0; }},
  };
}

struct Times {
  double median;
  double best;
};

/// Of the slowest rank in every round.
Times times_of_slowest(const std::vector<std::vector<double>>& seconds_by_rank) {
  std::vector<double> slowest = seconds_by_rank[0];
  for (const auto& seconds : seconds_by_rank) {
    for (std::size_t round = 0; round < slowest.size(); ++round)
      slowest[round] = std::max(slowest[round], seconds[round]);
  }
  std::sort(slowest.begin(), slowest.end());
  return {.median = slowest[slowest.size() / 2], .best = slowest[0]};
}

double seconds_of(Communicator& group, const std::function<void()>& work) {
  group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const Operation& operation, std::int64_t num_bytes, int num_ranks) {
  const int num_rounds = static_cast<int>(std::clamp<std::int64_t>((256 << 20) / num_bytes, 15, 400));
  std::vector<std::vector<double>> collective(num_ranks), copy(num_ranks);
  std::vector<const void*> memory(num_ranks);
  run_ranks({.num_ranks = num_ranks}, [&](World& world) {
    const auto group = world.split(DeviceMesh({{Axis::Data, num_ranks}}), std::vector{Axis::Data});
    const int here = group->index();
    Tensors tensors{.x = at::zeros({num_bytes / 4}), .other = at::zeros({num_bytes / 4})};
    memory[here] = tensors.x.const_data_ptr();
    const auto share = static_cast<std::size_t>(operation.taken(here, num_ranks) * static_cast<double>(num_bytes));
    for (int round = -2; round < num_rounds; ++round) {
      const double one = seconds_of(*group, [&] { operation.run(*group, tensors); });
      const double two = seconds_of(*group, [&] {
        // An all-reduce takes more than the tensor's size: in two goes.
        for (std::size_t done = 0; done < share; done += num_bytes) {
          const std::size_t size = std::min<std::size_t>(share - done, num_bytes);
          std::memcpy(tensors.other.mutable_data_ptr(), memory[(here + 1) % num_ranks], size);
        }
      });
      if (round < 0) continue;  // warm up
      collective[here].push_back(one);
      copy[here].push_back(two);
    }
    group->barrier();
  });
  const Times ours = times_of_slowest(collective), plain = times_of_slowest(copy);
  const double busiest = operation.taken(num_ranks - 1, num_ranks) * static_cast<double>(num_bytes);
  std::printf("%-16s %12s %10.4f %8.1f %12.4f %8.2f %10.4f %12.4f\n", operation.name, with_commas(num_bytes).c_str(),
              1e3 * ours.median, busiest / ours.median / 1e9, 1e3 * plain.median, ours.median / plain.median,
              1e3 * ours.best, 1e3 * plain.best);
}

/// What one process measures; rank 0 prints.
void measure_here(World& world, Communicator& group, const Operation& operation, std::int64_t num_bytes) {
  const int num_rounds = static_cast<int>(std::clamp<std::int64_t>((256 << 20) / num_bytes, 15, 200));
  Tensors tensors{.x = at::zeros({num_bytes / 4}), .other = at::zeros({num_bytes / 4})};
  std::vector<double> seconds;
  for (int round = -2; round < num_rounds; ++round) {
    const double one = seconds_of(group, [&] { operation.run(group, tensors); });
    if (round >= 0) seconds.push_back(one);
  }
  std::string bytes(reinterpret_cast<const char*>(seconds.data()), seconds.size() * sizeof(double));
  std::vector<std::vector<double>> by_rank;
  for (const std::string& one : gather_bytes(group, bytes, 0)) {
    by_rank.emplace_back(num_rounds);
    std::memcpy(by_rank.back().data(), one.data(), one.size());
  }
  if (world.rank() != 0) return;
  const Times ours = times_of_slowest(by_rank);
  const double busiest = operation.taken(world.size() - 1, world.size()) * static_cast<double>(num_bytes);
  std::printf("%-16s %12s %10.4f %8.1f %12s %8s %10.4f\n", operation.name, with_commas(num_bytes).c_str(),
              1e3 * ours.median, busiest / ours.median / 1e9, "", "", 1e3 * ours.best);
}

/// Every rank a process, forked before libtorch has threads.
void measure_processes(int num_ranks) {
  constexpr int kPort = 29511;
  std::vector<pid_t> processes;
  std::fflush(stdout);
  for (int rank = 0; rank < num_ranks; ++rank) {
    const pid_t process = fork();
    if (process != 0) {
      processes.push_back(process);
      continue;
    }
    Launch launch;
    launch.rank = rank;
    launch.world_size = num_ranks;
    launch.master_address = "127.0.0.1";
    launch.master_port = kPort;
    launch.interface_name = "lo";
    run_process({.launch = launch}, [](World& world) {
      const auto group = world.split(DeviceMesh({{Axis::Data, world.size()}}), std::vector{Axis::Data});
      for (const Operation& operation : operations()) {
        for (const std::int64_t num_bytes : {4 << 10, 64 << 10, 1 << 20, 16 << 20}) {
          measure_here(world, *group, operation, num_bytes);
        }
      }
    });
    std::fflush(stdout);
    _exit(0);
  }
  for (const pid_t process : processes) waitpid(process, nullptr, 0);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  const int num_ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  std::printf("%d ranks\n%-16s %12s %10s %8s %12s %8s %10s %12s\n", num_ranks, "operation", "bytes", "ms", "GB/s",
              "memcpy ms", "ratio", "best ms", "best memcpy");
  if (argc > 2 && std::string(argv[2]) == "gloo") {
    octavo::measure_processes(num_ranks);
    return 0;
  }
  for (const octavo::Operation& operation : octavo::operations()) {
    for (std::int64_t num_bytes = 4 << 10; num_bytes <= 64 << 20; num_bytes *= 16) {
      octavo::measure(operation, num_bytes, num_ranks);
    }
    octavo::measure(operation, 64 << 20, num_ranks);
  }
}
