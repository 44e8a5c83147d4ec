#include "octavo/ops/stash.h"

namespace octavo {

void Stash::offer(const std::string& name, std::initializer_list<at::Tensor> values) {
  if (policy_ != nullptr && policy_->keeps(name)) values_[name] = values;
}

std::vector<at::Tensor> Stash::kept(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<at::Tensor>{} : found->second;
}

}  // namespace octavo
