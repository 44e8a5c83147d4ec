#include "octavo/comm/agreement.h"

#include <ATen/ATen.h>

#include <cstring>

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

/// `text` of index 0 on every rank.
std::string spread(Communicator& ranks, const std::string& text) {
  constexpr std::size_t kWord = sizeof(std::int64_t);
  const at::Tensor size = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  ranks.broadcast(size, 0, Purpose::Control).wait();
  const auto num_bytes = static_cast<std::size_t>(size.item<std::int64_t>());
  const at::Tensor words = at::zeros({static_cast<std::int64_t>((num_bytes + kWord - 1) / kWord)}, at::kLong);
  if (ranks.index() == 0 && num_bytes > 0) std::memcpy(words.mutable_data_ptr(), text.data(), num_bytes);
  ranks.broadcast(words, 0, Purpose::Control).wait();
  return {static_cast<const char*>(words.const_data_ptr()), num_bytes};
}

}  // namespace

void require_agreement(Communicator& ranks, const std::vector<std::string>& facts) {
  const std::vector<std::string> lists = gather_bytes(ranks, join(facts, "\n"), 0);
  const std::string verdict = spread(ranks, lists.empty() ? "" : first_difference(lists));
  if (!verdict.empty()) throw UsageError(verdict);
}

}  // namespace octavo
