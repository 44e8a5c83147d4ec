#include "octavo/layout/stash_policy.h"

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
  throw InternalError("[layout] unknown stash policy");
}

StashPolicy parse_stash_policy(const std::string& text) {
  if (text == "keep") return {StashPolicy::Kind::Keep, {}};
  if (text == "recompute") return {StashPolicy::Kind::Recompute, {}};
  const std::vector<std::string> known = {"attention", "qkv", "gate_up"};
  StashPolicy policy{StashPolicy::Kind::Named, split(text, ',')};
  for (const std::string& name : policy.names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(cat("[layout] stash \"", text, "\": \"", name,
                           "\" is not known; use keep, recompute, or a list of ", join(known, ", "),
                           " separated by commas"));
    }
  }
  return policy;
}

}  // namespace octavo
