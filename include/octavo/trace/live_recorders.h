// The flight recorders of the ranks that run in this process, for whoever wants to see where they stand.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "octavo/trace/flight_recorder.h"

namespace octavo {

/// Made by main and handed to the ranks in their options; must outlive them. Thread-safe.
class LiveRecorders {
 public:
  /// Lists `recorder` while it lives. A null list lists nothing.
  class Entry {
   public:
    Entry(LiveRecorders* list, const FlightRecorder& recorder);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    LiveRecorders* list_;
    const FlightRecorder& recorder_;
  };

  /// What every listed rank did last, by rank; says so if none runs.
  std::string to_string() const;

 private:
  mutable std::mutex mutex_;
  std::vector<const FlightRecorder*> recorders_;
};

}  // namespace octavo
