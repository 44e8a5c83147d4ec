#include "octavo/comm/agreement.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/gather_bytes.h"

namespace octavo {
namespace {

/// What to tell the user; empty if all agree.
std::string first_difference(const std::vector<std::string>& lists) {
  const std::vector<std::string> expected = split(lists.front(), '\n');
  for (std::size_t rank = 1; rank < lists.size(); ++rank) {
    if (lists[rank] == lists.front()) continue;
    const std::vector<std::string> facts = split(lists[rank], '\n');
    for (std::size_t i = 0; i < std::max(facts.size(), expected.size()); ++i) {
      const std::string here = i < facts.size() ? facts[i] : "nothing more";
      const std::string there = i < expected.size() ? expected[i] : "nothing more";
      if (here == there) continue;
      return cat("[comm] the ranks were not started alike: rank 0 has ", in_quotes(there), ", rank ", rank, " has ",
                 in_quotes(here), ". Start every rank with the same options and inputs");
    }
  }
  return "";
}

}  // namespace

void require_agreement(Communicator& ranks, const std::vector<std::string>& facts) {
  const std::vector<std::string> lists = gather_bytes(ranks, join(facts, "\n"), 0);
  const std::string verdict = broadcast_bytes(ranks, lists.empty() ? "" : first_difference(lists));
  if (!verdict.empty()) throw UsageError(verdict);
}

}  // namespace octavo
