#include "octavo/mesh/hardware.h"

#include <algorithm>
#include <cctype>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

}  // namespace

const Accelerator& find_accelerator(std::string_view name) {
  const std::string wanted = lower(name);
  std::vector<std::string> known, names;
  for (const Accelerator& accelerator : hardware_catalogue()) {
    names.push_back(accelerator.name);
    std::vector<std::string> all = accelerator.aliases;
    all.insert(all.end(), {accelerator.name, accelerator.full_name});
    for (const std::string& one : all) {
      if (lower(one) == wanted) return accelerator;
      known.push_back(lower(one));
    }
  }
  std::string hint;
  if (const std::string close = nearest(wanted, known); !close.empty()) {
    hint = cat("did you mean ", find_accelerator(close).name, "? ");
  }
  throw UsageError(cat(
      "[mesh] accelerator ", in_quotes(name, 40), " is not in the catalogue; ", hint, "It knows ", join(names, ", "),
      ". For another one start from the nearest in a cluster's JSON file and replace its constants (docs/plan.md)"));
}

}  // namespace octavo
