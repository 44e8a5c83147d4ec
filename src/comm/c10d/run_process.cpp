#include "octavo/comm/run_process.h"

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <thread>

#include "comm/c10d/gloo_world.h"
#include "comm/rank_thread_settings.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

void check(const ProcessOptions& options) {
  const Launch& launch = options.launch;
  if (options.threads_per_rank < 1) {
    throw UsageError(cat("[comm] run_process: threads_per_rank=", options.threads_per_rank, "; needs at least 1."));
  }
  if (launch.rank < 0 || launch.rank >= launch.world_size) {
    throw UsageError(
        cat("[comm] run_process: rank ", launch.rank, " of ", launch.world_size, "; needs 0 <= rank < world_size."));
  }
  if (launch.master_address.empty() || launch.master_port < 1 || launch.master_port > 65535) {
    throw UsageError(cat("[comm] run_process: master \"", launch.master_address, "\" port ", launch.master_port,
                         "; needs an address and a port from 1 to 65535."));
  }
}

void run_body(GlooRank& here, const ProcessOptions& options, const std::function<void(World&)>& body) {
  const LiveRecorders::Entry listed(options.recorders, here.recorder());
  try {
    GlooWorld world(here);
    body(world);
  } catch (PeerFailure& error) {
    error.set_report(here.recorder().to_string());
    Failure failure = error.failure();
    if (failure.text.empty()) failure.text = "an exception";
    here.fail(failure);
    throw;
  } catch (CommError& error) {
    error.set_report(here.recorder().to_string());
    here.fail(lost_rank(here.rank(), error.what()));
    throw;
  } catch (const std::exception& error) {
    here.fail(lost_rank(here.rank(), error.what()));
    throw;
  } catch (...) {
    here.fail(lost_rank(here.rank(), "an exception of unknown type"));
    throw;
  }
  here.leave();
}

}  // namespace

void run_process(const ProcessOptions& options, const std::function<void(World&)>& body) {
  check(options);
  std::exception_ptr error;
  std::thread thread([&] {
    // Gloo writes to sockets whose other end may be gone; an error says so too. Its threads inherit this.
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    try {
      set_up_rank_thread(options.threads_per_rank);
      GlooRank here(options);
      run_body(here, options, body);
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace octavo
