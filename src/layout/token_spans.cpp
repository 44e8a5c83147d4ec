#include "octavo/layout/token_spans.h"

namespace octavo {

std::vector<int> TokenCut::chunks(int index) const {
  if (num_chunks() == num_ranks) return {index};
  return {index, num_chunks() - 1 - index};
}

}  // namespace octavo
