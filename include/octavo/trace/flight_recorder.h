// The last collectives of a rank, kept so that a failure, or a person, can see where it stands. Recording one costs a
// few dozen nanoseconds and no memory.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/trace/collective.h"
#include "octavo/trace/purpose.h"

namespace octavo {

/// One collective as posted.
struct FlightCall {
  int group;  // from FlightRecorder::add_group()
  Purpose purpose;
  Collective kind;
  std::int64_t count;      // elements: of x, or of one rank's part
  std::string_view dtype;  // of static storage: "float32"
  bool lends = false;      // memory instead of a copy: share, lend, borrow
};

/// What is kept of it.
struct FlightEntry {
  std::int64_t number = 0;  // among all of the rank's, from 1
  FlightCall call{};
  std::optional<std::int64_t> step;  // the step that it was posted in
  bool done = false;
  Seconds posted = 0;  // since the recorder was made
  Seconds took = 0;    // until it was waited for; so far, if it is not done
};

/// One rank's. Filled by the rank's thread, read by any.
class FlightRecorder {
 public:
  static constexpr int kKept = 32;

  explicit FlightRecorder(int rank);

  int rank() const { return rank_; }
  /// The number of the group with that name, new or known.
  int add_group(const std::string& name);
  /// Collectives from now on belong to this step.
  void set_step(std::int64_t step);
  std::optional<std::int64_t> step() const;

  /// Its number, for done().
  std::int64_t posted(const FlightCall& call);
  void done(std::int64_t number);

  /// Oldest first.
  std::vector<FlightEntry> entries() const;
  /// "rank 3, the last 2 collectives:" and a line for each; says so if there was none.
  std::string to_string() const;

 private:
  Seconds now() const;

  const int rank_;
  const std::int64_t begin_ns_;
  mutable std::mutex mutex_;  // taken for a few copies at a time
  std::vector<std::string> groups_;
  std::array<FlightEntry, kKept> ring_;  // number k in place k mod kKept
  std::int64_t last_ = 0;
  std::optional<std::int64_t> step_;
};

}  // namespace octavo
