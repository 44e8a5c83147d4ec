#include "comm/threads/rank_threads.h"

#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// The first line without its full stop: a libtorch error goes on with a stack trace.
std::string first_sentence(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line.empty() ? "an error without a text" : line;
}

Failure lost(int rank, const std::string& text) {
  return {.rank = rank, .kind = FailureKind::RankLost, .text = first_sentence(text)};
}

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
    world.fail(rank, lost(rank, error.what()), std::current_exception(), /*caused_by_peer=*/false);
  } catch (...) {
    world.fail(rank, lost(rank, "an exception of unknown type"), std::current_exception(), /*caused_by_peer=*/false);
  }
}

}  // namespace

void run_rank_threads(const RankThreadOptions& options, const std::function<void(ThreadRank&)>& body) {
  if (options.num_ranks < 1) {
    throw UsageError(cat("[comm] run_ranks: num_ranks=", options.num_ranks, "; needs at least 1."));
  }
  SharedWorld world(options.num_ranks, std::chrono::duration<Seconds>(options.deadline).count());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    try {
      threads.emplace_back(run_one, std::ref(world), rank, std::cref(body));
    } catch (const std::system_error& error) {
      // The ranks that did start must not wait for those that never will.
      for (int absent = rank; absent < options.num_ranks; ++absent) {
        const std::string text = cat("its thread could not start: ", error.what());
        world.fail(absent, lost(absent, text), std::current_exception(), /*caused_by_peer=*/false);
      }
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (world.first_error()) std::rethrow_exception(world.first_error());
}

}  // namespace octavo
