#include "octavo/layout/placement.h"

#include <algorithm>

#include "octavo/layout/fold_steps.h"

namespace octavo {
namespace {

/// Adds `interval` to an ascending list, joined to the last one if it begins where that ends.
void append(std::vector<Interval>& list, Interval interval) {
  if (interval.empty()) return;
  if (!list.empty() && list.back().end == interval.begin) {
    list.back().end = interval.end;
  } else {
    list.push_back(interval);
  }
}

/// Lays out one rank's memory slab by slab.
class Placer {
 public:
  Placer(const ParamTable& table, const Layout& layout, int rank)
      : table_(table),
        layout_(layout),
        tensor_index_(layout.mesh.index(rank, Axis::Tensor)),
        fold_index_(layout.mesh.index(rank, Axis::Fold)) {
    for (const BlockLayout& block : table.blocks()) out_.shares.push_back(share_of(block, layout, tensor_index_));
  }

  /// Everything but buckets and what follows from them.
  void add_block(int block) {
    const BlockLayout& layout = table_.blocks()[block];
    for (int i = 0; i < static_cast<int>(layout.panels.size()); ++i) {
      if (table_.slabs()[table_.panel_slab(block, i)].block == block) add_panel(block, i);  // else it is shared
    }
    for (int i = 0; i < static_cast<int>(layout.commons.size()); ++i) add_common(table_.common_slab(block, i));
  }

  std::int64_t end() const { return end_; }
  void align(std::int64_t grain) { end_ = round_up(end_, grain); }
  const std::vector<GradientSum>& sums() const { return sums_; }
  Placement& out() { return out_; }

 private:
  /// A slab of which the fold axis stores `rows` of `unit_rows` here. What follows is laid out as if all were here.
  void begin_slab(Interval rows, std::int64_t unit_rows, std::int64_t width) {
    align(kAlignmentElements);
    out_.slabs.push_back({end_, rows, unit_rows});
    here_ = {rows.begin * width, rows.end * width};
    reached_ = 0;
  }

  /// Passes over the next `count` elements of the slab; those of them that are here, as an interval of local memory.
  Interval advance(std::int64_t count) {
    const std::int64_t size = intersection(here_, {reached_, reached_ + count}).size();
    reached_ += count;
    end_ += size;
    return {end_ - size, end_};
  }

  void add_part(int slab, Interval elements, bool primary) {
    const std::int64_t skipped = std::max<std::int64_t>(0, here_.begin - reached_);
    const Interval local = advance(elements.size());
    if (local.empty()) return;
    const std::int64_t begin = elements.begin + skipped;
    out_.parts.push_back({slab, {begin, begin + local.size()}, local.begin, primary});
  }

  void add_sum(const std::vector<Axis>& axes, int neighbours, Interval local) {
    auto found = std::find_if(sums_.begin(), sums_.end(),
                              [&](const GradientSum& sum) { return sum.axes == axes && sum.neighbours == neighbours; });
    if (found == sums_.end()) found = sums_.insert(sums_.end(), {axes, neighbours, {}});
    append(found->local, local);
  }

  void add_panel(int block, int index) {
    const PanelLayout& panel = table_.blocks()[block].panels[index];
    const BlockShare& share = out_.shares[block];
    const int slab = table_.panel_slab(block, index);
    const std::int64_t unit_elements = panel.rows_per_unit() * panel.width;
    const std::int64_t unit_rows = share.computed_units() * share.rows_per_unit(panel);
    begin_slab(fold_part(unit_rows, layout_.mesh.size(Axis::Fold), fold_index_), unit_rows, panel.width);
    if (share.splits_parts) {
      for (std::int64_t unit = share.units.begin; unit < share.units.end; ++unit) {
        add_split_unit(slab, panel, share, unit * unit_elements);
      }
    } else {
      add_part(slab, {share.units.begin * unit_elements, share.units.end * unit_elements}, share.replica == 0);
    }
    advance(share.num_padded * unit_elements);
    // As long as the longest part, so that what follows lies at the same place on all ranks of the fold axis: their
    // shards then have the same vectors, which are summed over that axis.
    const std::int64_t degree = layout_.mesh.size(Axis::Fold);
    end_ += ((unit_rows + degree - 1) / degree) * panel.width - here_.size();
  }

  /// A unit whose parts are shared out: this rank's rows of the sections by part, and all rows of the others.
  void add_split_unit(int slab, const PanelLayout& panel, const BlockShare& share, std::int64_t first_element) {
    for (const PanelSection& section : panel.sections) {
      const std::int64_t whole = section.rows_per_unit * panel.width;
      const std::int64_t own = share.rows_per_unit(section) * panel.width;
      const std::int64_t begin = first_element + (section.by_part ? share.replica * own : 0);
      const std::int64_t local_begin = end_;
      add_part(slab, {begin, begin + own}, section.by_part || share.replica == 0);
      if (!section.by_part) add_sum({}, share.replicas, {local_begin, end_});
      first_element += whole;
    }
  }

  void add_common(int slab) {
    const Slab& info = table_.slabs()[slab];
    begin_slab({0, info.rows}, info.rows, info.width);
    const std::int64_t local_begin = end_;
    add_part(slab, {0, info.elements()}, tensor_index_ == 0 && fold_index_ == 0);
    const std::vector<Axis> axes = partial_axes(info, layout_);
    if (!axes.empty()) add_sum(axes, 0, {local_begin, end_});
  }

  const ParamTable& table_;
  const Layout& layout_;
  const int tensor_index_, fold_index_;
  std::int64_t end_ = 0;      // of the memory laid out so far
  Interval here_;             // elements of the slab's unit rows that are stored here
  std::int64_t reached_ = 0;  // elements of them passed over so far
  std::vector<GradientSum> sums_;
  Placement out_;
};

std::vector<Interval> intersection(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> both;
  auto other = b.begin();
  for (const Interval& interval : a) {
    while (other != b.end() && other->end <= interval.begin) ++other;
    for (auto it = other; it != b.end() && it->begin < interval.end; ++it) append(both, intersection(interval, *it));
  }
  return both;
}

}  // namespace

std::int64_t GradientSum::elements() const {
  std::int64_t sum = 0;
  for (const Interval& interval : local) sum += interval.size();
  return sum;
}

std::int64_t Placement::optimized_elements() const {
  std::int64_t sum = 0;
  for (const Interval& interval : optimized) sum += interval.size();
  return sum;
}

RankGroup sum_group(const GradientSum& sum, const DeviceMesh& mesh, int rank) {
  return sum.axes.empty() ? neighbour_group(mesh, rank, Axis::Tensor, sum.neighbours)
                          : rank_group(mesh, rank, sum.axes);
}

std::vector<Axis> partial_axes(const Slab& common, const Layout& layout) {
  std::vector<Axis> axes;
  if (layout.mesh.size(Axis::Fold) > 1) axes.push_back(Axis::Fold);
  if (layout.mesh.size(Axis::Tensor) > 1 && (common.in_units || layout.tensor_form == TensorForm::Scatter)) {
    axes.push_back(Axis::Tensor);
  }
  return axes;
}

Placement place(const ParamTable& table, const Layout& layout, int rank, Bytes bucket_bytes) {
  check_divides(table.blocks(), layout);
  const int data_degree = layout.mesh.size(Axis::Data);
  const int data_index = layout.mesh.index(rank, Axis::Data);
  const int num_blocks = static_cast<int>(table.blocks().size());
  Placer placer(table, layout, rank);
  Placement& placement = placer.out();
  Bucket bucket{0, -1, {0, 0}, {0, 0}};
  for (int block = 0; block < num_blocks; ++block) {
    placer.add_block(block);
    bucket.last_block = block;
    const Bytes bytes = (placer.end() - bucket.local.begin) * element_bytes(ElementType::Float32);
    if (bytes < bucket_bytes && block + 1 < num_blocks) continue;
    placer.align(kAlignmentElements * data_degree);
    bucket.local.end = placer.end();
    const Interval part = even_part(bucket.local.size(), data_degree, data_index, kAlignmentElements);
    bucket.shard = {bucket.local.begin + part.begin, bucket.local.begin + part.end};
    placement.buckets.push_back(bucket);
    bucket = {block + 1, block, {placer.end(), placer.end()}, {0, 0}};
  }
  placement.local_elements = placer.end();

  std::vector<Interval> shards, counted;
  for (const Bucket& each : placement.buckets) {
    append(shards, each.shard);
    placement.optimized.push_back(layout.zero == ZeroStage::Optimizer ? each.shard : each.local);
  }
  for (const StoredPart& part : placement.parts) {
    if (part.primary) append(counted, part.local());
  }
  placement.primary = intersection(counted, shards);
  for (const GradientSum& sum : placer.sums()) {
    placement.sums.push_back({sum.axes, sum.neighbours, intersection(sum.local, placement.optimized)});
  }
  return std::move(placement);
}

StateBytes state_bytes(const Placement& placement, ElementType compute) {
  const Bytes sum_bytes = element_bytes(sum_type(compute));
  return {placement.local_elements * element_bytes(compute), placement.local_elements * sum_bytes,
          placement.optimized_elements() * sum_bytes * num_optimizer_tensors(compute)};
}

Interval sequences_of(const Layout& layout, std::int64_t num_sequences, int data_index) {
  return even_part(num_sequences, layout.mesh.size(Axis::Data), data_index);
}

}  // namespace octavo
