#include "octavo/parallel/local_sequence.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "parallel/position_tables.h"

namespace octavo {
namespace {

/// They are where they are seen.
class LocalKeyValues final : public KeyValueExchange {
 public:
  LocalKeyValues(const at::Tensor& k, const at::Tensor& v) : k_(k), v_(v) {}
  std::pair<at::Tensor, at::Tensor> gathered() override { return {k_, v_}; }
  std::pair<at::Tensor, at::Tensor> send_back(at::Tensor dk, at::Tensor dv) override {
    return {std::move(dk), std::move(dv)};
  }
  void finish() override {}

 private:
  at::Tensor k_, v_;
};

std::vector<ops::AttentionPiece> causal_pieces(const std::vector<std::int64_t>& lengths) {
  std::vector<ops::AttentionPiece> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    pieces.push_back({begin, length, begin, length, /*causal=*/true});
    begin += length;
  }
  return pieces;
}

PositionTables tables_of(const std::vector<ops::AttentionPiece>& sequences, const at::TensorOptions& options) {
  std::vector<PositionRun> runs;
  std::int64_t num_tokens = 0;
  for (const ops::AttentionPiece& piece : sequences) {
    runs.push_back({piece.q_begin, 0, piece.q_len});
    num_tokens += piece.q_len;
  }
  return {num_tokens, std::move(runs), options};
}

class LocalSequence final : public SequenceContext {
 public:
  LocalSequence(const std::vector<std::int64_t>& lengths, const at::TensorOptions& options)
      : pieces_(causal_pieces(lengths)), tables_(tables_of(pieces_, options)) {}

  at::Tensor cut(const at::Tensor& values, std::int64_t) const override { return values; }
  at::Tensor whole(const at::Tensor& x) override { return x; }
  const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim) override {
    return tables_.rope(spec, head_dim);
  }
  std::unique_ptr<KeyValueExchange> exchange(const at::Tensor& k, const at::Tensor& v) override {
    return std::make_unique<LocalKeyValues>(k, v);
  }
  bool exchange_takes_time() const override { return false; }
  const std::vector<ops::AttentionPiece>& pieces() const override { return pieces_; }

 private:
  std::vector<ops::AttentionPiece> pieces_;
  PositionTables tables_;
};

}  // namespace

std::unique_ptr<SequenceContext> make_local_sequence(const std::vector<std::int64_t>& lengths,
                                                     const at::TensorOptions& options) {
  return std::make_unique<LocalSequence>(lengths, options);
}

}  // namespace octavo
