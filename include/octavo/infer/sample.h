// Text from a model, one token at a time. The prefix is evaluated anew for each token: there is no cache yet.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/models/decoder.h"

namespace octavo {

struct SampleOptions {
  std::int64_t num_tokens = 100;
  double temperature = 0.0;      // 0: the most likely token
  std::uint64_t seed = 0;        // of the draws, which depend on it and on the position alone
  std::int64_t max_context = 0;  // only so many last tokens are seen; 0: all
};

/// `prompt` (at least one id) followed by num_tokens more. Collective over the ranks that share the decoder's units;
/// each gets the same tokens.
std::vector<std::int64_t> sample(Decoder& decoder, std::vector<std::int64_t> prompt, const SampleOptions& options);

}  // namespace octavo
