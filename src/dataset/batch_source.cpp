#include "octavo/dataset/batch_source.h"

#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

BatchSource::BatchSource(std::int64_t sequence_length, std::int64_t batch_size)
    : sequence_length_(sequence_length), batch_size_(batch_size) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // so that their product fits an int64
  const auto check = [kMost](const char* what, std::int64_t value) {
    if (value < 1 || value > kMost) {
      throw UsageError(cat("[dataset] ", what, "=", value, " must be in 1 .. ", kMost));
    }
  };
  check("sequence_length", sequence_length);
  check("batch_size", batch_size);
}

void BatchSource::check_place(std::int64_t step, std::int64_t index) const {
  internal_check(step >= 0 && index >= 0 && index < batch_size_,
                 cat("[dataset] sequence ", index, " of step ", step, " asked for; a batch has ", batch_size_));
}

}  // namespace octavo
