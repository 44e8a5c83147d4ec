// Figures that follow from a formula, a catalogue or a simulation, against octavo's own: the cases of golden files
// whose kind is not "measurement".
//
// A case is recognised by what it expects, so that others of its kind, at other sizes, are compared the same way.
// Integers, words and lists are compared exactly, reals to the case's tolerance, and where that is 0 to the digits that
// files write. What a case expects and no answer knows is left out, and said; remarks and
// published values beside an identity are not compared.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace octavo {

struct IdentityReport {
  int cases = 0;                      // of which anything is compared
  int figures = 0;                    // compared: numbers, words, lists
  std::vector<std::string> wrong;     // one line per figure that is another
  std::vector<std::string> left_out;  // one line per case or figure that nothing is known about
};

/// Throws UsageError for a file without a list of cases.
IdentityReport check_identities(const nlohmann::json& file);

}  // namespace octavo
