#include "comm/c10d/note_board.h"

#include <cstdlib>

#include "octavo/base/text.h"

namespace octavo {
namespace {

std::string group_key(const std::string& group) {
  return cat("failure/", group);
}
std::string rank_key(int rank) {
  return cat("end/", rank);
}
constexpr const char* kEnded = "ended";
constexpr const char* kAllEnded = "all-ended";

}  // namespace

std::string to_note(const Failure& failure) {
  return cat(failure.kind == FailureKind::Mismatch ? 'M' : 'L', failure.rank, ' ', failure.text);
}

std::optional<Failure> from_note(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || space < 2 || (text[0] != 'M' && text[0] != 'L')) return std::nullopt;
  return Failure{.rank = std::atoi(text.c_str() + 1),
                 .kind = text[0] == 'M' ? FailureKind::Mismatch : FailureKind::RankLost,
                 .text = text.substr(space + 1)};
}

Failure NoteBoard::report(const std::string& group, const Failure& failure) {
  const std::optional<std::string> kept = store_.set_once(group_key(group), to_note(failure));
  return kept ? from_note(*kept).value_or(failure) : failure;
}

std::optional<Failure> NoteBoard::failure(const std::string& group) {
  const std::optional<std::string> text = store_.look_up(group_key(group));
  return text ? from_note(*text) : std::nullopt;
}

void NoteBoard::report_end(int rank, const RankEnd& end) {
  store_.set(rank_key(rank), end.failed ? to_note(end.failure) : "returned");
  if (store_.add(kEnded, 1) == num_ranks_) store_.set(kAllEnded, "yes");
}

std::optional<RankEnd> NoteBoard::end_of(int rank) {
  const std::optional<std::string> text = store_.look_up(rank_key(rank));
  if (!text) return std::nullopt;
  const std::optional<Failure> failure = from_note(*text);
  return RankEnd{.failed = failure.has_value(), .failure = failure.value_or(Failure{})};
}

std::optional<std::int64_t> NoteBoard::num_ended() {
  return store_.add(kEnded, 0);
}

void NoteBoard::await_all_ended(std::chrono::milliseconds patience) {
  store_.get(kAllEnded, patience);
}

}  // namespace octavo
