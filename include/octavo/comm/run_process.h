// This process as one rank of many that a launcher started: the backend "gloo". CPU tensors only.
#pragma once

#include <chrono>
#include <functional>

#include "octavo/comm/launch.h"
#include "octavo/comm/world.h"
#include "octavo/trace/live_recorders.h"

namespace octavo {

struct ProcessOptions {
  Launch launch;
  int threads_per_rank = 1;                                       // of libtorch's operations
  std::chrono::milliseconds deadline = std::chrono::seconds(60);  // of every wait for a peer, and of the start
  bool check_calls = false;  // compare every call with the peers' before it runs: debugging, one more message each
  LiveRecorders* recorders = nullptr;  // lists the rank's recorder while it runs
};

/// Runs `body` on a new thread with gradients off, denormals flushed and `threads_per_rank` threads for libtorch, and
/// returns when all ranks have returned, or when the deadline has passed since this one did. Communicators and Pendings
/// must not outlive the body. A helper thread per communicator finishes what is in flight while the body computes.
///
/// If a rank throws, or its process ends, the waits of its peers end with a CommError that names it, and why as far as
/// that is known; its own error is thrown here. The CommError's report() is what this rank did last. Ranks that call
/// different operations get a UsageError each with check_calls; without, sums are wrong or Gloo ends the process.
/// Throws UsageError or CommError if the ranks do not find each other before the deadline.
void run_process(const ProcessOptions& options, const std::function<void(World&)>& body);

}  // namespace octavo
