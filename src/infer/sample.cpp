#include "octavo/infer/sample.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/random.h"

namespace octavo {
namespace {

/// The id that the draw `uniform` in [0, 1) falls on.
std::int64_t draw(const at::Tensor& logits_V, double temperature, double uniform) {
  const at::Tensor p = at::softmax(logits_V.to(at::kDouble) / temperature, 0);
  const double* probability = p.const_data_ptr<double>();
  double below = 0;
  for (std::int64_t id = 0; id + 1 < p.size(0); ++id) {
    below += probability[id];
    if (uniform < below) return id;
  }
  return p.size(0) - 1;
}

}  // namespace

std::vector<std::int64_t> sample(Decoder& decoder, std::vector<std::int64_t> tokens, const SampleOptions& options) {
  if (tokens.empty()) throw UsageError("[infer] an empty prompt; give at least one token to start from");
  const CounterRandom random(hash_key(options.seed, "sample"));
  for (std::int64_t i = 0; i < options.num_tokens; ++i) {
    std::int64_t seen = static_cast<std::int64_t>(tokens.size());
    if (options.max_context > 0) seen = std::min(seen, options.max_context);
    TokenBatch batch;
    batch.ids_N = at::empty({seen}, at::kLong);
    std::copy(tokens.end() - seen, tokens.end(), batch.ids_N.data_ptr<std::int64_t>());
    batch.lengths = {seen};
    const at::Tensor last_1H = decoder.hidden(batch).narrow(0, seen - 1, 1);
    const at::Tensor logits_V = decoder.logits(last_1H).select(0, 0);
    tokens.push_back(options.temperature > 0 ? draw(logits_V, options.temperature,
                                                    random.uniform(static_cast<std::uint64_t>(tokens.size())))
                                             : logits_V.argmax().item<std::int64_t>());
  }
  return tokens;
}

}  // namespace octavo
