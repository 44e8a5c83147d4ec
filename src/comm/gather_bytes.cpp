#include "octavo/comm/gather_bytes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace octavo {

std::vector<std::string> gather_bytes(Communicator& ranks, const std::string& own, int root) {
  constexpr std::int64_t kWord = sizeof(std::int64_t);
  const at::Tensor sizes = at::zeros({ranks.size()}, at::kLong);
  const at::Tensor own_size = sizes.narrow(0, ranks.index(), 1);
  own_size.fill_(static_cast<std::int64_t>(own.size()));
  ranks.all_gather(sizes, own_size, Purpose::Control).wait();
  const std::int64_t* size = sizes.const_data_ptr<std::int64_t>();
  const std::int64_t words = (*std::max_element(size, size + ranks.size()) + kWord - 1) / kWord;

  const at::Tensor all = at::zeros({ranks.size(), words}, at::kLong);
  const at::Tensor here = all.select(0, ranks.index());
  if (!own.empty()) std::memcpy(here.mutable_data_ptr(), own.data(), own.size());
  ranks.all_gather(all, here, Purpose::Control).wait();
  std::vector<std::string> texts;
  if (ranks.index() != root) return texts;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto* bytes = static_cast<const char*>(all.const_data_ptr()) + rank * words * kWord;
    texts.emplace_back(bytes, static_cast<std::size_t>(size[rank]));
  }
  return texts;
}

}  // namespace octavo
