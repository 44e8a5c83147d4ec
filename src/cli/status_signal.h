// SIGUSR1 makes the program say where its ranks stand.
#pragma once

#include <atomic>
#include <thread>

#include "octavo/trace/live_recorders.h"

namespace octavo::cli {

/// While it lives, SIGUSR1 prints the last collectives of every rank in `recorders` to stderr. Make it in main before
/// there are other threads: the signal must be blocked in all of them. `recorders` must outlive it.
class StatusSignal {
 public:
  explicit StatusSignal(const LiveRecorders& recorders);
  ~StatusSignal();
  StatusSignal(const StatusSignal&) = delete;
  StatusSignal& operator=(const StatusSignal&) = delete;

 private:
  void loop();

  const LiveRecorders& recorders_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace octavo::cli
