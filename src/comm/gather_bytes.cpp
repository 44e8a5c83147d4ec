#include "octavo/comm/gather_bytes.h"

#include <ATen/ATen.h>

#include <cstring>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

// Whole int64 elements: the smallest dtype that travels as it is.
std::int64_t num_words(std::int64_t num_bytes) {
  return (num_bytes + 7) / 8;
}

at::Tensor to_words(const std::string& bytes) {
  at::Tensor words = at::zeros({num_words(static_cast<std::int64_t>(bytes.size()))}, at::kLong);
  if (!bytes.empty()) std::memcpy(words.mutable_data_ptr(), bytes.data(), bytes.size());
  return words;
}

}  // namespace

std::vector<std::string> gather_bytes(Communicator& group, const std::string& own, int root) {
  if (root < 0 || root >= group.size()) {
    throw UsageError(cat("[comm] gather_bytes over ", group.name(), ": root ", root, "; the group has indices 0 to ",
                         group.size() - 1, "."));
  }
  at::Tensor sizes = at::empty({group.size()}, at::kLong);
  group.all_gather(sizes, at::full({1}, static_cast<std::int64_t>(own.size()), at::kLong), Purpose::Control).wait();
  if (group.index() != root) {
    if (!own.empty()) group.send(to_words(own), root, Purpose::Control).wait();
    return {};
  }
  std::vector<std::string> all(group.size());
  for (int member = 0; member < group.size(); ++member) {
    const auto num_bytes = sizes[member].item<std::int64_t>();
    if (member == root) all[member] = own;
    if (member == root || num_bytes == 0) continue;
    at::Tensor words = at::empty({num_words(num_bytes)}, at::kLong);
    group.recv(words, member, Purpose::Control).wait();
    all[member].assign(static_cast<const char*>(words.const_data_ptr()), num_bytes);
  }
  return all;
}

std::string broadcast_bytes(Communicator& group, const std::string& text) {
  const at::Tensor size = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  group.broadcast(size, 0, Purpose::Control).wait();
  const auto num_bytes = size.item<std::int64_t>();
  const at::Tensor words = group.index() == 0 ? to_words(text) : at::empty({num_words(num_bytes)}, at::kLong);
  group.broadcast(words, 0, Purpose::Control).wait();
  return {static_cast<const char*>(words.const_data_ptr()), static_cast<std::size_t>(num_bytes)};
}

}  // namespace octavo
