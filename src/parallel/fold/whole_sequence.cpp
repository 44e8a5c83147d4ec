#include "octavo/parallel/fold/whole_sequence.h"

#include <ATen/ATen.h>

#include "octavo/base/error.h"
#include "octavo/parallel/local_sequence.h"
#include "parallel/fold/token_map.h"

namespace octavo {
namespace {

std::vector<std::int64_t> padded(const TokenCut& cut, std::vector<std::int64_t> lengths) {
  for (std::int64_t& length : lengths) length = cut.padded_length(length);
  return lengths;
}

class WholeSequence final : public SequenceContext {
 public:
  WholeSequence(const TokenCut& cut, const std::vector<std::int64_t>& lengths, PositionOrder order,
                const at::TensorOptions& options)
      : order_(order), map_(cut, lengths), positions_(make_local_sequence(padded(cut, lengths), options)) {}

  at::Tensor cut(const at::Tensor& values, std::int64_t fill) const override {
    const at::Tensor all = at::full({map_.num_positions()}, fill, values.options());
    for (const ChunkPlace& chunk : map_.chunks()) {
      all.narrow(0, map_.row(chunk, order_), chunk.tokens).copy_(values.narrow(0, chunk.first_token, chunk.tokens));
    }
    return all;
  }

  at::Tensor whole(const at::Tensor& x) override {
    const at::Tensor tokens = at::empty({map_.num_tokens(), x.size(1)}, x.options());
    for (const ChunkPlace& chunk : map_.chunks()) {
      tokens.narrow(0, chunk.first_token, chunk.tokens).copy_(x.narrow(0, map_.row(chunk, order_), chunk.tokens));
    }
    return tokens;
  }

  const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim) override {
    return sequences().rope(spec, head_dim);
  }
  std::unique_ptr<KeyValueExchange> exchange(const at::Tensor& k, const at::Tensor& v) override {
    return sequences().exchange(k, v);
  }
  bool exchange_takes_time() const override { return false; }
  const std::vector<ops::AttentionPiece>& pieces() const override { return sequences().pieces(); }

 private:
  SequenceContext& sequences() const {
    internal_check(order_ == PositionOrder::Sequences || map_.is_ordered(),
                   "[parallel] attention to positions that are not in the order of their sequences");
    return *positions_;
  }

  const PositionOrder order_;
  const TokenMap map_;
  const std::unique_ptr<SequenceContext> positions_;  // all of them, in the order of the sequences
};

}  // namespace

std::unique_ptr<SequenceContext> make_whole_sequence(const TokenCut& cut, const std::vector<std::int64_t>& lengths,
                                                     PositionOrder order, const at::TensorOptions& options) {
  return std::make_unique<WholeSequence>(cut, lengths, order, options);
}

}  // namespace octavo
