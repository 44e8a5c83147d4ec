#include "octavo/plan/traffic.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/layout/fold_units.h"
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

enum class Direction { Forward, Backward };

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
  int fold_degree() const { return layout_.mesh.size(Axis::Fold); }            // D

  void add_micro_batches(bool training) {
    const std::int64_t here = sequences_of(layout_, shape_.batch, layout_.mesh.index(rank_, Axis::Data)).size();
    for (std::int64_t first = 0; first < here; first += shape_.micro_batch) {
      const TokenCut cut{layout_.fold_order, fold_degree()};
      const std::int64_t positions =
          std::min(shape_.micro_batch, here - first) * cut.padded_length(shape_.sequence_length);
      add_tensor_axis(positions / cut.num_ranks, training);
      const std::vector<BlockForms> forms =
          fold_forms(table_, layout_, placement_.shares, fold_work(shape_, positions, training));
      const int head = static_cast<int>(forms.size()) - 1;
      for (int block = 0; block < head; ++block) {
        add_fold_pass(block, forms[block].forward, Direction::Forward, positions);
        if (training) add_fold_pass(block, forms[block].backward, Direction::Backward, positions);
      }
      add_head(forms[head].forward, positions, training);
    }
  }

  void add_tensor_axis(std::int64_t tokens, bool training) {
    const std::int64_t sums = training ? 2 + 2 * num_blocks_ : 1 + num_blocks_;
    if (layout_.tensor_form == TensorForm::AllReduce) {
      rows_.add(tensor_, Purpose::Activations, Collective::AllReduce, tokens * hidden_ * compute_bytes(), sums);
      return;
    }
    const Bytes activation = round_up(tokens, layout_.mesh.size(Axis::Tensor)) * hidden_ * compute_bytes();
    rows_.add(tensor_, Purpose::Activations, Collective::AllGather, activation,
              training ? 2 + 3 * num_blocks_ : 1 + num_blocks_);
    rows_.add(tensor_, Purpose::Activations, Collective::ReduceScatter, activation, sums);
  }

  void add_fold_pass(int block, FoldForm form, Direction direction, std::int64_t positions) {
    const BlockKind kind = table_.blocks()[block].kind;
    const bool forward = direction == Direction::Forward;
    if (form == FoldForm::Activations) {
      // Both ways, the embedding moves its rows alone; a block's input is gathered in backward too.
      const std::int64_t gathers = kind == BlockKind::Embedding ? (forward ? 0 : 1) : (forward ? 1 : 2);
      const std::int64_t sums = kind == BlockKind::Embedding ? (forward ? 1 : 0) : 1;
      add_fold_activations(positions, gathers, sums);
      add_foreign_rows(block, direction);
      return;
    }
    add_folded_rows(block, /*reads=*/kind == BlockKind::Embedding && !forward ? 0 : 1, /*returns=*/!forward);
    if (kind != BlockKind::Attention) return;
    const PanelLayout& qkv = table_.blocks()[block].panels[attention_panels::kQkv];
    const BlockShare& share = placement_.shares[block];
    const std::int64_t rows_per_unit = qkv.sections[1].rows_per_unit + qkv.sections[2].rows_per_unit;
    const int parts = fold_parts(layout_, kind);
    for (int step = 0; step < num_fold_steps(share, parts); ++step) {
      const std::int64_t units = units_of_fold_step(share, parts, step).size();
      const Bytes message = positions * units * rows_per_unit * compute_bytes();
      rows_.add(fold_, Purpose::KeysValues, Collective::AllGather, message);
      if (!forward) rows_.add(fold_, Purpose::KeysValues, Collective::ReduceScatter, message);
    }
  }

  void add_fold_activations(std::int64_t positions, std::int64_t gathers, std::int64_t sums) {
    const Bytes activation = positions * hidden_ * compute_bytes();
    rows_.add(fold_, Purpose::Activations, Collective::AllGather, activation, gathers);
    rows_.add(fold_, Purpose::Activations, Collective::ReduceScatter, activation, sums);
  }

  /// Rows of units that no rank stores whole, as this rank sends and receives them.
  void add_foreign_rows(int block, Direction direction) {
    const BlockLayout& info = table_.blocks()[block];
    const int here = layout_.mesh.index(rank_, Axis::Fold);
    for (const ForeignRows& each : foreign_rows(info, placement_.shares[block], fold_degree())) {
      if (each.owner != here && each.user != here) continue;
      const bool lends = each.owner == here;
      const std::int64_t elements = each.rows.size() * info.panels[each.panel].width;
      rows_.add(fold_, Purpose::Weights, lends ? Collective::Send : Collective::Receive, elements * compute_bytes());
      if (direction == Direction::Forward) continue;
      rows_.add(fold_, Purpose::Gradients, lends ? Collective::Receive : Collective::Send, elements * sum_bytes());
    }
  }

  /// The head's gradient is made with its loss: at once where its rows are in one step.
  void add_head(FoldForm form, std::int64_t positions, bool training) {
    const auto head = static_cast<int>(table_.blocks().size()) - 1;
    const std::int64_t units = placement_.shares[head].computed_units();
    const int num_steps = fold_degree() == 1 ? 1 : num_fold_steps(placement_.shares[head], fold_degree());
    if (form == FoldForm::Weights) {
      add_folded_rows(head, /*reads=*/training && num_steps > 1 ? 2 : 1, /*returns=*/training);
      const std::int64_t tokens = positions / fold_degree();
      add_loss_rows(tensor_, tokens, num_steps == 1 ? tokens_per_chunk(units) : tokens);
      return;
    }
    add_fold_activations(positions, /*gathers=*/1, /*sums=*/training ? 1 : 0);
    const std::int64_t chunk = tokens_per_chunk(even_part(units, fold_degree(), 0).size());
    add_loss_rows(tensor_, positions, chunk);
    add_loss_rows(fold_, positions, chunk);
  }

  /// Merges of `tokens` tokens over a group, `chunk` of them at a time.
  void add_loss_rows(const RankGroup& group, std::int64_t tokens, std::int64_t chunk) {
    const auto num_ranks = static_cast<std::int64_t>(group.ranks.size());
    for (std::int64_t first = 0; first < tokens; first += chunk) {
      const Bytes state = 2 * std::min(chunk, tokens - first) * sum_bytes();
      rows_.add(group, Purpose::Loss, Collective::AllGather, num_ranks * state);
    }
  }

  /// Each panel's rows, step by step and owner by owner.
  void add_folded_rows(int block, std::int64_t reads, bool returns) {
    const BlockLayout& info = table_.blocks()[block];
    const BlockShare& share = placement_.shares[block];
    if (fold_degree() == 1) return;
    if (goes_round(info.kind, share, fold_degree())) {
      for (const PanelLayout& panel : info.panels) add_round(panel, share, reads, returns);
      return;
    }
    const int parts = fold_parts(layout_, info.kind);
    for (int panel = 0; panel < static_cast<int>(info.panels.size()); ++panel) {
      const std::int64_t width = info.panels[panel].width;
      const std::int64_t unit_rows = placement_.slabs[table_.panel_slab(block, panel)].unit_rows;
      for (int step = 0; step < num_fold_steps(share, parts); ++step) {
        for_each_fold_owner(share, info.panels[panel], unit_rows, fold_degree(), parts, step, [&](int, Interval rows) {
          const std::int64_t elements = rows.size() * width;
          rows_.add(fold_, Purpose::Weights, Collective::Broadcast, elements * compute_bytes(), reads);
          if (returns) rows_.add(fold_, Purpose::Gradients, Collective::Reduce, elements * sum_bytes());
        });
      }
    }
  }

  /// A panel whose rows, of one unit each, go from rank to rank.
  void add_round(const PanelLayout& panel, const BlockShare& share, std::int64_t reads, bool returns) {
    const int degree = fold_degree(), here = layout_.mesh.index(rank_, Axis::Fold);
    const bool direct = layout_.fold_route == FoldRoute::Direct || shape_.shares_memory;
    const auto elements_of = [&](int step) {
      return units_of_fold_step(share, degree, (here + step) % degree).size() * panel.width;
    };
    for (int step = 1; step < degree; ++step) {
      const std::int64_t lent = elements_of(direct ? 0 : step - 1);
      rows_.add(fold_, Purpose::Weights, Collective::Send, lent * compute_bytes(), reads);
      rows_.add(fold_, Purpose::Weights, Collective::Receive, 0, reads);
      if (!returns) continue;
      rows_.add(fold_, Purpose::Gradients, Collective::Send, elements_of(step) * sum_bytes());
      rows_.add(fold_, Purpose::Gradients, Collective::Receive, 0);
    }
  }

  /// As the head takes them (blocks/vocabulary.h, Head::Options), of `rows` rows at once.
  std::int64_t tokens_per_chunk(std::int64_t rows) const {
    constexpr Bytes kLogitBytes = 64 << 20;
    constexpr std::int64_t kFewestTokens = 256;
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

FoldWork fold_work(const StepShape& shape, std::int64_t positions, bool training) {
  const FoldPasses passes = !training          ? FoldPasses::Forward
                            : shape.recomputes ? FoldPasses::Apart
                                               : FoldPasses::Together;
  return {positions, shape.compute, passes, shape.reads_in_place};
}

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
