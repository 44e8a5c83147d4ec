#include "octavo/parallel/local_sequence.h"

#include <ATen/ATen.h>

#include <optional>

#include "octavo/memory/account.h"

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

class LocalSequence final : public SequenceContext {
 public:
  LocalSequence(const std::vector<std::int64_t>& lengths, const at::TensorOptions& options) : options_(options) {
    for (const std::int64_t length : lengths) {
      pieces_.push_back({num_tokens_, length, num_tokens_, length, /*causal=*/true});
      num_tokens_ += length;
    }
  }

  at::Tensor cut(const at::Tensor& values, std::int64_t) const override { return values; }
  at::Tensor whole(const at::Tensor& x) override { return x; }

  const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim) override {
    // Layers share their rotary embedding in all models so far, so one table is at hand at a time.
    if (!table_ || table_->spec != spec || table_->head_dim != head_dim) {
      const CategoryScope scope(MemoryCategory::Activations);
      table_ = {spec, head_dim, ops::rope_table(spec, head_dim, positions(), options_.dtype().toScalarType())};
    }
    return table_->table;
  }

  std::unique_ptr<KeyValueExchange> exchange(const at::Tensor& k, const at::Tensor& v) override {
    return std::make_unique<LocalKeyValues>(k, v);
  }
  const std::vector<ops::AttentionPiece>& pieces() const override { return pieces_; }

 private:
  struct NamedTable {
    RopeSpec spec;
    std::int64_t head_dim;
    ops::RopeTable table;
  };

  at::Tensor positions() const {
    at::Tensor positions = at::empty({num_tokens_}, options_.dtype(at::kLong));
    if (positions.is_meta()) return positions;
    for (const ops::AttentionPiece& piece : pieces_) {
      for (std::int64_t t = 0; t < piece.q_len; ++t) positions.data_ptr<std::int64_t>()[piece.q_begin + t] = t;
    }
    return positions;
  }

  at::TensorOptions options_;
  std::int64_t num_tokens_ = 0;
  std::vector<ops::AttentionPiece> pieces_;
  std::optional<NamedTable> table_;
};

}  // namespace

std::unique_ptr<SequenceContext> make_local_sequence(const std::vector<std::int64_t>& lengths,
                                                     const at::TensorOptions& options) {
  return std::make_unique<LocalSequence>(lengths, options);
}

}  // namespace octavo
