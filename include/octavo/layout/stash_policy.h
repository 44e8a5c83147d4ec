// What a block keeps from forward for its backward, as users say it: --stash recompute.
#pragma once

#include <string>
#include <vector>

namespace octavo {

/// keep: everything that the backward reads. recompute: the block's input alone. named: the input and the values of
/// these names, which the recompute then does not compute again.
struct StashPolicy {
  enum class Kind { Keep, Recompute, Named };
  Kind kind = Kind::Keep;
  std::vector<std::string> names;

  bool keeps(const std::string& name) const;
  std::string to_string() const;
};

/// Names that blocks offer: "attention" (output and log-sum-exp), "qkv", "gate_up".
/// "keep", "recompute" or names separated by commas. Throws UsageError for an unknown name.
StashPolicy parse_stash_policy(const std::string& text);

}  // namespace octavo
