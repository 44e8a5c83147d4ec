#include "octavo/plan/traffic.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/layout/placement.h"
#include "octavo/layout/token_spans.h"
#include "octavo/mesh/rank_group.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

/// Messages summed up as a ledger does.
class Rows {
 public:
  /// `count` messages of `message` bytes over a group.
  void add(const RankGroup& group, Purpose purpose, Collective kind, Bytes message, std::int64_t count = 1) {
    const auto num_ranks = static_cast<int>(group.ranks.size());
    if (num_ranks == 1 || count == 0) return;
    const auto [row, is_new] = rows_.try_emplace({group.name, purpose, kind});
    if (is_new) row->second = {.group = group.name, .purpose = purpose, .kind = kind};
    row->second.count += count;
    row->second.logical += count * collective_cost(kind, Algorithm::Direct, num_ranks, message).sent;
  }

  std::vector<LedgerRow> list() const {
    std::vector<LedgerRow> list;
    for (const auto& [key, row] : rows_) list.push_back(row);
    return list;
  }

 private:
  std::map<std::tuple<std::string, Purpose, Collective>, LedgerRow> rows_;
};

class Prediction {
 public:
  Prediction(const ParamTable& table, const Layout& layout, const StepShape& shape, int rank)
      : table_(table),
        layout_(layout),
        shape_(shape),
        rank_(rank),
        placement_(place(table, layout, rank)),
        data_(rank_group(layout.mesh, rank, std::array{Axis::Data})),
        tensor_(rank_group(layout.mesh, rank, std::array{Axis::Tensor})),
        fold_(rank_group(layout.mesh, rank, std::array{Axis::Fold})),
        world_(rank_group(layout.mesh, rank, kAllAxes)),
        hidden_(table.slabs()[table.panel_slab(0, vocabulary_panels::kRows)].width),
        num_blocks_(static_cast<std::int64_t>(table.blocks().size()) - 2) {
    internal_check(shape.batch >= 0 && shape.sequence_length >= 1 && shape.micro_batch >= 1,
                   cat("[plan] a step of ", shape.batch, " sequences of ", shape.sequence_length, " tokens, ",
                       shape.micro_batch, " at once; needs no negative batch and at least 1 of the others"));
  }

  void add_step() {
    add_micro_batches(/*training=*/true);
    add_data_axis();
    for (const GradientSum& sum : placement_.sums) {
      rows_.add(sum_group(sum, layout_.mesh, rank_), Purpose::Gradients, Collective::AllReduce,
                sum.elements() * sum_bytes());
    }
    rows_.add(world_, Purpose::Norm, Collective::AllReduce, kTwoScalars);
  }

  void add_evaluation(std::int64_t num_batches) {
    for (std::int64_t batch = 0; batch < num_batches; ++batch) add_micro_batches(/*training=*/false);
    rows_.add(world_, Purpose::Loss, Collective::AllReduce, kTwoScalars);
  }

  std::vector<LedgerRow> rows() const { return rows_.list(); }

 private:
  static constexpr Bytes kTwoScalars = 2 * 8;

  Bytes compute_bytes() const { return element_bytes(shape_.compute); }        // e
  Bytes sum_bytes() const { return element_bytes(sum_type(shape_.compute)); }  // g

  void add_micro_batches(bool training) {
    const std::int64_t here = sequences_of(layout_, shape_.batch, layout_.mesh.index(rank_, Axis::Data)).size();
    for (std::int64_t first = 0; first < here; first += shape_.micro_batch) {
      const TokenCut cut{layout_.fold_order, layout_.mesh.size(Axis::Fold)};
      const std::int64_t positions =
          std::min(shape_.micro_batch, here - first) * cut.padded_length(shape_.sequence_length);
      if (cut.num_ranks > 1) add_folded_blocks(positions, training);
      add_micro_batch(positions / cut.num_ranks, training);
    }
  }

  void add_micro_batch(std::int64_t tokens, bool training) {
    const std::int64_t degree = layout_.mesh.size(Axis::Tensor);
    const std::int64_t sums = training ? 2 + 2 * num_blocks_ : 1 + num_blocks_;
    if (layout_.tensor_form == TensorForm::AllReduce) {
      rows_.add(tensor_, Purpose::Activations, Collective::AllReduce, tokens * hidden_ * compute_bytes(), sums);
    } else {
      const Bytes activation = round_up(tokens, degree) * hidden_ * compute_bytes();
      rows_.add(tensor_, Purpose::Activations, Collective::AllGather, activation,
                training ? 2 + 3 * num_blocks_ : 1 + num_blocks_);
      rows_.add(tensor_, Purpose::Activations, Collective::ReduceScatter, activation, sums);
    }
    const bool one_step = layout_.mesh.size(Axis::Fold) == 1 ||
                          num_fold_steps(placement_.shares.back(), layout_.mesh.size(Axis::Fold)) == 1;
    const std::int64_t chunk = one_step ? tokens_per_chunk() : tokens;
    for (std::int64_t first = 0; first < tokens; first += chunk) {
      rows_.add(tensor_, Purpose::Loss, Collective::AllGather,
                degree * 2 * std::min(chunk, tokens - first) * sum_bytes());
    }
  }

  /// Weights to the tokens, keys and values to the queries, and the gradients of both back.
  void add_folded_blocks(std::int64_t positions, bool training) {
    const int degree = layout_.mesh.size(Axis::Fold);
    for (std::size_t block = 0; block < table_.blocks().size(); ++block) {
      const BlockLayout& info = table_.blocks()[block];
      const BlockShare& share = placement_.shares[block];
      const int num_steps = num_fold_steps(share, degree);
      // The embedding's rows are not read in backward; a head of one step makes its gradient in the one pass.
      const bool one_pass = info.kind == BlockKind::Embedding || (info.kind == BlockKind::Head && num_steps == 1);
      const std::int64_t passes = training && !one_pass ? 2 : 1;
      if (goes_round(info.kind, share, degree)) {
        for (const PanelLayout& panel : info.panels) add_round(panel, share, passes, training);
        continue;
      }
      for (int step = 0; step < num_steps; ++step) {
        for (std::size_t i = 0; i < info.panels.size(); ++i) {
          add_folded_rows(static_cast<int>(block), static_cast<int>(i), step, passes, training);
        }
        if (info.kind != BlockKind::Attention) continue;
        const PanelLayout& qkv = info.panels[attention_panels::kQkv];
        const std::int64_t units = units_of_fold_step(share, degree, step).size();
        const std::int64_t rows_per_unit = qkv.sections[1].rows_per_unit + qkv.sections[2].rows_per_unit;
        const Bytes message = positions * units * rows_per_unit * compute_bytes();
        rows_.add(fold_, Purpose::KeysValues, Collective::AllGather, message, training ? 2 : 1);
        if (training) rows_.add(fold_, Purpose::KeysValues, Collective::ReduceScatter, message);
      }
    }
  }

  /// A panel whose rows, of one unit each, go from rank to rank.
  void add_round(const PanelLayout& panel, const BlockShare& share, std::int64_t passes, bool training) {
    const int degree = layout_.mesh.size(Axis::Fold), here = layout_.mesh.index(rank_, Axis::Fold);
    const bool direct = layout_.fold_route == FoldRoute::Direct || shape_.shares_memory;
    const auto elements_of = [&](int step) {
      return units_of_fold_step(share, degree, (here + step) % degree).size() * panel.width;
    };
    for (int step = 1; step < degree; ++step) {
      const std::int64_t lent = elements_of(direct ? 0 : step - 1);
      rows_.add(fold_, Purpose::Weights, Collective::Send, lent * compute_bytes(), passes);
      rows_.add(fold_, Purpose::Weights, Collective::Receive, 0, passes);
      if (!training) continue;
      rows_.add(fold_, Purpose::Gradients, Collective::Send, elements_of(step) * sum_bytes());
      rows_.add(fold_, Purpose::Gradients, Collective::Receive, 0);
    }
  }

  void add_folded_rows(int block, int panel, int step, std::int64_t passes, bool training) {
    const PanelLayout& layout = table_.blocks()[block].panels[panel];
    const std::int64_t unit_rows = placement_.slabs[table_.panel_slab(block, panel)].unit_rows;
    for_each_fold_owner(placement_.shares[block], layout, unit_rows, layout_.mesh.size(Axis::Fold), step,
                        [&](int, Interval rows) {
                          const std::int64_t elements = rows.size() * layout.width;
                          rows_.add(fold_, Purpose::Weights, Collective::Broadcast, elements * compute_bytes(), passes);
                          if (!training) return;
                          rows_.add(fold_, Purpose::Gradients, Collective::Reduce, elements * sum_bytes());
                        });
  }

  /// As the head takes them (blocks/vocabulary.h, Head::Options).
  std::int64_t tokens_per_chunk() const {
    constexpr Bytes kLogitBytes = 64 << 20;
    constexpr std::int64_t kFewestTokens = 256;
    const std::int64_t rows = placement_.shares.back().computed_units();
    return std::max(kFewestTokens, kLogitBytes / (rows * compute_bytes()));
  }

  void add_data_axis() {
    for (const Bucket& bucket : placement_.buckets) {
      const std::int64_t elements = bucket.local.size();
      if (layout_.zero == ZeroStage::None) {
        rows_.add(data_, Purpose::Gradients, Collective::AllReduce, elements * sum_bytes());
        continue;
      }
      rows_.add(data_, Purpose::Gradients, Collective::ReduceScatter, elements * sum_bytes());
      rows_.add(data_, Purpose::Weights, Collective::AllGather, elements * compute_bytes());
    }
  }

  const ParamTable& table_;
  const Layout& layout_;
  const StepShape& shape_;
  const int rank_;
  const Placement placement_;
  const RankGroup data_, tensor_, fold_, world_;
  const std::int64_t hidden_;      // h
  const std::int64_t num_blocks_;  // B
  Rows rows_;
};

}  // namespace

std::vector<LedgerRow> predict_step_traffic(const ParamTable& table, const Layout& layout, const StepShape& shape,
                                            int rank) {
  Prediction prediction(table, layout, shape, rank);
  prediction.add_step();
  return prediction.rows();
}

std::vector<LedgerRow> predict_evaluation_traffic(const ParamTable& table, const Layout& layout, const StepShape& shape,
                                                  int rank, std::int64_t num_batches) {
  Prediction prediction(table, layout, shape, rank);
  prediction.add_evaluation(num_batches);
  return prediction.rows();
}

}  // namespace octavo
