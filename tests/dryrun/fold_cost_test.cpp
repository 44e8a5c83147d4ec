// What folded ranks execute and send, against the formulas of the paper's derivation (arXiv 2604.26294;
// docs/folding.md).
#include <doctest/doctest.h>

#include <algorithm>

#include "octavo/base/text.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/train/rank_session.h"

using namespace octavo;

namespace {

// Every message is a multiple of 120, so that its share (D-1)/D is a whole number of bytes.
constexpr std::int64_t kHidden = 120, kWidth = 20, kFeatures = 80, kBatch = 2;

ModelSpec model_of(std::int64_t heads, std::int64_t kv_heads, int layers, std::int64_t features = kFeatures) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = kHidden;
  model.vocab_size = 48;
  for (int layer = 0; layer < layers; ++layer) {
    model.layers.push_back({AttentionSpec{heads, kv_heads, kWidth, false, {}}, GatedMlpSpec{features}});
  }
  return model;
}

DryRunOptions options_of(const std::string& layout, const std::string& stash, std::int64_t length) {
  DryRunOptions options;
  options.layout = parse_layout(layout);
  options.trainer.stash = parse_stash_policy(stash);
  options.trainer.micro_batch = kBatch;
  options.batch = kBatch;
  options.sequence_length = length;
  return options;
}

Bytes bytes_of(const std::vector<LedgerRow>& rows) {
  Bytes bytes = 0;
  for (const LedgerRow& row : rows) {
    if (row.purpose != Purpose::Norm && row.kind != Collective::AllReduce) bytes += row.logical;
  }
  return bytes;
}

/// Over all ranks, what a step sends but for the sums of norms.
Bytes training_bytes(const ModelSpec& model, const DryRunOptions& options) {
  Bytes bytes = 0;
  for (int rank = 0; rank < options.layout.world_size(); ++rank)
    bytes += bytes_of(dry_run(model, options, rank).ledger);
  return bytes;
}

/// The same for an evaluation, on real ranks: forward alone. Rows of tensor's all_reduces count.
Bytes forward_bytes(const ModelSpec& model, const DryRunOptions& options) {
  const ParamTable table(model);
  std::vector<Bytes> bytes(options.layout.world_size(), 0);
  const RandomBatches batches({model.vocab_size, options.sequence_length, kBatch, 0});
  run_session({.num_ranks = options.layout.world_size()}, [&](RankSession& session) {
    const int rank = session.world.rank();
    ParamStore store(table, place(table, options.layout, rank), ElementType::Float32, at::kCPU, false);
    Trainer trainer(model, options.layout, session.world, store, options.trainer);
    session.world.ledger().reset();
    (void)trainer.evaluate(batches, 1);
    for (const LedgerRow& row : session.world.ledger().rows()) {
      if (row.group != "world") bytes[rank] += row.logical;
    }
  });
  Bytes sum = 0;
  for (const Bytes each : bytes) sum += each;
  return sum;
}

/// Of one layer: that of three less that of two.
template <class BytesOf>
double per_layer(std::int64_t heads, std::int64_t kv_heads, const BytesOf& bytes_of_model) {
  return static_cast<double>(bytes_of_model(model_of(heads, kv_heads, 3)) -
                             bytes_of_model(model_of(heads, kv_heads, 2)));
}

}  // namespace

TEST_CASE("a folded layer sends c (W + K) elements forward and c (2 W + 2 K) backward, on the mean over the ranks") {
  constexpr std::int64_t kBytes = 4;
  for (const auto& [heads, kv_heads] : {std::pair<std::int64_t, std::int64_t>{6, 6}, {6, 2}, {6, 3}}) {
    const double w = static_cast<double>((2 * heads + 2 * kv_heads) * kWidth * kHidden + 3 * kFeatures * kHidden);
    for (const int degree : {2, 3, 4, 5, 8}) {
      const std::int64_t length = 2 * degree * 3;
      const double k = 2.0 * kv_heads * kWidth * kBatch * length;
      for (const char* stash : {"keep", "recompute", "attention"}) {
        CAPTURE(heads);
        CAPTURE(kv_heads);
        CAPTURE(degree);
        CAPTURE(stash);
        const DryRunOptions options = options_of(cat("fold=", degree, ":weights"), stash, length);
        const double whole =
            per_layer(heads, kv_heads, [&](const ModelSpec& model) { return training_bytes(model, options); });
        // c = (D-1)/D, over D ranks.
        CHECK(whole == (degree - 1) * kBytes * ((w + k) + (2 * w + 2 * k)));
      }
      const DryRunOptions options = options_of(cat("fold=", degree, ":weights"), "keep", length);
      const double forward =
          per_layer(heads, kv_heads, [&](const ModelSpec& model) { return forward_bytes(model, options); });
      CHECK(forward == (degree - 1) * kBytes * (w + k));
    }
  }
}

TEST_CASE("forward, fold and tensor parallelism send the same at N = (2 + 2g + 3F) / (4 - 2g) h tokens") {
  constexpr std::int64_t kHeads = kHidden / kWidth;
  struct Case {
    std::int64_t kv_heads, factor;  // g = kv_heads / kHeads, F
    double crossover;               // times h
  };
  for (const Case& each : {Case{6, 4, 8.0}, {6, 2, 5.0}, {2, 2, 2.6}}) {
    const double g = static_cast<double>(each.kv_heads) / kHeads, f = static_cast<double>(each.factor);
    CHECK((2 + 2 * g + 3 * f) / (4 - 2 * g) == doctest::Approx(each.crossover));
    const auto layer_bytes = [&](const std::string& layout, std::int64_t tokens) {
      const DryRunOptions options = options_of(layout, "keep", tokens / kBatch);
      return forward_bytes(model_of(kHeads, each.kv_heads, 2, each.factor * kHidden), options) -
             forward_bytes(model_of(kHeads, each.kv_heads, 1, each.factor * kHidden), options);
    };
    const auto tokens = static_cast<std::int64_t>(each.crossover * kHidden);
    constexpr std::int64_t kStep = 2 * 2 * kBatch;  // no position is filled up
    CAPTURE(each.kv_heads);
    CHECK(layer_bytes("fold=2:weights", tokens) == layer_bytes("tensor=2", tokens));
    CHECK(layer_bytes("fold=2:weights", tokens - kStep) > layer_bytes("tensor=2", tokens - kStep));
    CHECK(layer_bytes("fold=2:weights", tokens + kStep) < layer_bytes("tensor=2", tokens + kStep));
  }
}

TEST_CASE("a folded rank executes what a tensor-parallel one does, where units and tokens divide") {
  const ModelSpec model = model_of(8, 4, 2);
  for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
    for (const int degree : {2, 4}) {
      const std::int64_t length = 6 * degree;
      const ExecutedFlops tensor = dry_run(model, options_of(cat("tensor=", degree), stash, length), 0).flops;
      for (int rank = 0; rank < degree; ++rank) {
        CAPTURE(stash);
        CAPTURE(degree);
        CAPTURE(rank);
        const ExecutedFlops fold =
            dry_run(model, options_of(cat("fold=", degree, ":weights"), stash, length), rank).flops;
        // The head's logits are made a second time where its rows come in several steps (docs/folding.md).
        const double head_again = 2.0 * kBatch * static_cast<double>(length) / degree * kHidden * 48;
        CHECK(fold.matmul == tensor.matmul + head_again);
        CHECK(fold.attention == tensor.attention);
      }
    }
  }
}

TEST_CASE("whatever divides, by weights a rank executes 1/D of what one rank does for the filled-up sequences") {
  for (const auto& [heads, kv_heads] : {std::pair<std::int64_t, std::int64_t>{6, 3}, {6, 2}}) {
    const ModelSpec model = model_of(heads, kv_heads, 2, 77);
    for (const char* stash : {"keep", "recompute"}) {
      for (const int degree : {2, 3, 5, 8}) {
        const std::int64_t length = 13, filled = (length + 2 * degree - 1) / (2 * degree) * 2 * degree;
        const ExecutedFlops one = dry_run(model, options_of("", stash, filled), 0).flops;
        const double head_again = 2.0 * kBatch * static_cast<double>(filled) * kHidden * 48;
        for (int rank = 0; rank < degree; ++rank) {
          CAPTURE(stash);
          CAPTURE(degree);
          CAPTURE(rank);
          const ExecutedFlops here =
              dry_run(model, options_of(cat("fold=", degree, ":weights"), stash, length), rank).flops;
          CHECK(here.matmul * degree == one.matmul + head_again);
          CHECK(here.attention * degree == one.attention);
        }
      }
    }
  }
}

TEST_CASE("under zigzag every rank computes the same pairs of queries and keys, as the kernel's shapes count them") {
  const ModelSpec model = model_of(8, 4, 2);
  for (const int degree : {2, 3, 4, 5, 8}) {
    const std::int64_t length = 2 * degree * 5;
    std::vector<double> zigzag, contiguous;
    for (int rank = 0; rank < degree; ++rank) {
      zigzag.push_back(
          dry_run(model, options_of(cat("fold=", degree, ":weights"), "keep", length), rank).flops.attention);
      contiguous.push_back(dry_run(model, options_of(cat("fold=", degree, ":weights:contiguous"), "keep", length), rank)
                               .flops.attention);
    }
    CAPTURE(degree);
    const double one = dry_run(model, options_of("", "keep", length), 0).flops.attention;
    for (const double each : zigzag) CHECK(each * degree == one);
    CHECK(contiguous.front() < contiguous.back());
    // Chunk p of D with C tokens each: C^2 p + C (C+1) / 2 pairs.
    const double c = static_cast<double>(length) / degree;
    CHECK(contiguous.back() / contiguous.front() ==
          doctest::Approx((c * c * (degree - 1) + c * (c + 1) / 2) / (c * (c + 1) / 2)));
  }
}
