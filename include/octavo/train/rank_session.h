// Ranks with an account of their memory: how a program starts them.
#pragma once

#include <chrono>
#include <functional>

#include "octavo/comm/world.h"
#include "octavo/layout/layout.h"
#include "octavo/memory/account.h"

namespace octavo {

struct RankSession {
  World& world;
  MemoryAccount& memory;  // charged for everything that this rank's thread allocates
};

struct SessionOptions {
  int num_ranks = 1;
  int threads_per_rank = 1;           // of libtorch's operators
  Bytes memory_limit = 0;             // per rank; 0: none
  std::chrono::seconds deadline{60};  // of every wait for another rank
};

/// Runs `body` on every rank, as threads of this process, and returns when all have returned. The first error of a rank
/// ends the others and is thrown here. Throws UsageError for fewer than one rank or thread.
void run_session(const SessionOptions& options, const std::function<void(RankSession&)>& body);

}  // namespace octavo
