// The three ways octavo fails. A message reads: [folder] where, which values, the rule, what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace octavo {

/// The input is wrong: fix it and run again. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rank or a link was lost: restart from the last checkpoint. Exit code 3.
class CommError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// Lines about what the rank (or every rank of this process) was doing, for people; empty if nothing is known.
  const std::string& report() const { return report_; }
  void set_report(std::string report) { report_ = std::move(report); }

 private:
  std::string report_;
};

/// A check of the run failed: the loss is not finite, the memory limit was met, a proof is out of tolerance. Exit
/// code 1.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Octavo itself is wrong. Exit code 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws InternalError with `message` unless `condition` holds.
void internal_check(bool condition, const std::string& message);

}  // namespace octavo
