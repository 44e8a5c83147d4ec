#include "comm/threads/rank_threads.h"

#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

void run_one(SharedWorld& world, int rank, const std::function<void(ThreadRank&)>& body) {
  try {
    ThreadRank here(world, rank);
    body(here);
    world.leave(rank);
  } catch (const PeerFailure& error) {
    Failure failure = error.failure();
    if (failure.text.empty()) failure.text = "an exception";
    world.fail(rank, failure, std::current_exception(), /*caused_by_peer=*/true);
  } catch (const std::exception& error) {
    world.fail(rank, lost_rank(rank, error.what()), std::current_exception(), /*caused_by_peer=*/false);
  } catch (...) {
    world.fail(rank, lost_rank(rank, "an exception of unknown type"), std::current_exception(),
               /*caused_by_peer=*/false);
  }
}

}  // namespace

void run_rank_threads(const RankThreadOptions& options, const std::function<void(ThreadRank&)>& body) {
  if (options.num_ranks < 1) {
    throw UsageError(cat("[comm] run_ranks: num_ranks=", options.num_ranks, "; needs at least 1."));
  }
  SharedWorld world(options.num_ranks, std::chrono::duration<Seconds>(options.deadline).count());
  std::vector<std::unique_ptr<LiveRecorders::Entry>> listed;
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    listed.push_back(std::make_unique<LiveRecorders::Entry>(options.recorders, world.recorder(rank)));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    try {
      threads.emplace_back(run_one, std::ref(world), rank, std::cref(body));
    } catch (const std::system_error& error) {
      // The ranks that did start must not wait for those that never will.
      for (int absent = rank; absent < options.num_ranks; ++absent) {
        const std::string text = cat("its thread could not start: ", error.what());
        world.fail(absent, lost_rank(absent, text), std::current_exception(), /*caused_by_peer=*/false);
      }
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (!world.first_error()) return;
  try {
    std::rethrow_exception(world.first_error());
  } catch (CommError& error) {
    error.set_report(world.report());
    throw;
  }
}

}  // namespace octavo
