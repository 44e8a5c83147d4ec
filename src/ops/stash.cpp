#include "octavo/ops/stash.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

bool StashPolicy::keeps(const std::string& name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string StashPolicy::to_string() const {
  switch (kind) {
    case Kind::Keep:
      return "keep";
    case Kind::Recompute:
      return "recompute";
    case Kind::Named:
      return join(names, ",");
  }
  throw InternalError("[ops] unknown stash policy");
}

StashPolicy parse_stash_policy(const std::string& text) {
  if (text == "keep") return {StashPolicy::Kind::Keep, {}};
  if (text == "recompute") return {StashPolicy::Kind::Recompute, {}};
  const std::vector<std::string> known = {"attention", "qkv", "gate_up"};
  StashPolicy policy{StashPolicy::Kind::Named, split(text, ',')};
  for (const std::string& name : policy.names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(cat("[ops] stash \"", text, "\": \"", name,
                           "\" is not known; use keep, recompute, or a list of ", join(known, ", "),
                           " separated by commas"));
    }
  }
  return policy;
}

void Stash::offer(const std::string& name, std::initializer_list<at::Tensor> values) {
  if (policy_ != nullptr && policy_->keeps(name)) values_[name] = values;
}

std::vector<at::Tensor> Stash::kept(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<at::Tensor>{} : found->second;
}

}  // namespace octavo
