// What ranks tell each other about failures, beside the connections that may have failed: notes in the key store.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "comm/c10d/key_store.h"
#include "comm/threads/poison.h"

namespace octavo {

/// A failure as text, and back; nullopt if `text` is none.
std::string to_note(const Failure& failure);
std::optional<Failure> from_note(const std::string& text);

/// How a rank's body ended.
struct RankEnd {
  bool failed;
  Failure failure;  // if it failed
};

/// All answers are "unknown" once the store is lost. Thread-safe.
class NoteBoard {
 public:
  NoteBoard(KeyStore& store, int num_ranks) : store_(store), num_ranks_(num_ranks) {}

  /// Keeps the first failure of a group; returns the one that is kept.
  Failure report(const std::string& group, const Failure& failure);
  std::optional<Failure> failure(const std::string& group);

  /// The body of `rank` has returned or thrown.
  void report_end(int rank, const RankEnd& end);
  std::optional<RankEnd> end_of(int rank);
  /// Ranks whose body has ended; nullopt if unknown.
  std::optional<std::int64_t> num_ended();
  /// Returns when the bodies of all ranks have ended, or after `patience`.
  void await_all_ended(std::chrono::milliseconds patience);

 private:
  KeyStore& store_;
  const int num_ranks_;
};

}  // namespace octavo
