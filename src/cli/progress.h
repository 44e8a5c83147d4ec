// A line that moves on a terminal, or lines now and then in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace octavo::cli {

class Progress {
 public:
  /// `total` steps; `quiet` prints nothing.
  Progress(std::int64_t total, bool quiet);
  /// After step `done` of total. On a terminal the line is redrawn; else it is printed every tenth of the way.
  void update(std::int64_t done, const std::string& text);
  /// A line that stays.
  void note(const std::string& text);
  void finish();

 private:
  std::int64_t total_;
  bool quiet_, terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace octavo::cli
