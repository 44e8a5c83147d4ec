// Ranks as forked processes of a test, over gloo on this machine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

#include "octavo/comm/world.h"

namespace octavo {

struct ForkedRanks {
  int num_ranks;
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  bool check_calls = false;
};

/// How a rank's process ended.
struct ForkedEnd {
  int signal = 0;       // that killed it; 0: it ended by itself
  std::string type;     // of the exception that run_process threw: "UsageError", "CommError", ...; empty: none
  std::string text;     // what it said
  std::string report;   // of a CommError
  bool caused_by_peer;  // it was told so by a peer
  double seconds;       // from the start to its end
};

/// Forks a process per rank and runs the body there with run_process(). `meanwhile` runs here in between and may send
/// signals to the processes, given by rank. Fork before the calling process has used several threads in libtorch.
std::vector<ForkedEnd> run_forked(const ForkedRanks& options, const std::function<void(World&)>& body,
                                  const std::function<void(const std::vector<pid_t>&)>& meanwhile = {});

/// The same; throws the first error, by rank, that was not caused by a peer's, else the first; with its type.
void run_forked_or_throw(const ForkedRanks& options, const std::function<void(World&)>& body);

}  // namespace octavo
