#include "cli/status_signal.h"

#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <string>

namespace octavo::cli {
namespace {

sigset_t status_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

StatusSignal::StatusSignal(const LiveRecorders& recorders) : recorders_(recorders) {
  const sigset_t set = status_signal();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { loop(); });
}

StatusSignal::~StatusSignal() {
  stopping_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void StatusSignal::loop() {
  const sigset_t set = status_signal();
  int signal = 0;
  while (sigwait(&set, &signal) == 0 && !stopping_) {
    const std::string text = recorders_.to_string();
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }
}

}  // namespace octavo::cli
