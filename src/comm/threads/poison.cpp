#include "comm/threads/poison.h"

namespace octavo {

Failure lost_rank(int rank, const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return {.rank = rank, .kind = FailureKind::RankLost, .text = line.empty() ? "an error without a text" : line};
}

}  // namespace octavo
