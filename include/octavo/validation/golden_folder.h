// A folder of published figures, and what octavo says in their place: `octavo plan --validate`.
//
// Every *.json of the folder with the form of tests/data/golden is compared. Measurements by the file's "dataset": step
// times (time_validation.h), peaks of memory (memory_validation.h), collectives (collective_validation.h). All else by
// what a case expects (identities.h).
//
// What fails
//   memory, collectives   a row that is further off than its tolerance
//   identities            any figure that is another
//   step times            a source whose mean error is above its limit; a published ranking whose best layout is
//                         another's, or whose Kendall tau is below 0.8; a group with less than 90 % of its pairs in
//                         order
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "octavo/validation/identities.h"
#include "octavo/validation/time_validation.h"
#include "octavo/validation/validation_row.h"

namespace octavo {

struct FileReport {
  std::string name, title;
  std::vector<ValidationRow> rows;  // memory or collectives
  std::optional<TimeValidation> time;
  IdentityReport identities;
  std::string why;                    // nothing of it is compared: the reason
  std::string note;                   // what is odd about it
  std::vector<std::string> failures;  // one line each
};

/// In the order of the files' names. Throws UsageError for a folder that is none, holds no *.json, or holds one that
/// cannot be read.
std::vector<FileReport> validate_folder(const std::string& folder);

}  // namespace octavo
