#include "octavo/plan/audit_slices.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/layout/misfit.h"
#include "octavo/plan/audit_pipeline.h"

namespace octavo {
namespace {

/// Rows of `piece` among the first `count` rows of its slab.
std::int64_t rows_before(const ParameterPiece& piece, std::int64_t count) {
  const std::int64_t reached = count - piece.first_unit * piece.unit_rows;
  if (reached <= 0) return 0;
  const std::int64_t whole = std::min(reached / piece.unit_rows, piece.num_units);
  if (whole == piece.num_units) return whole * piece.rows_per_unit;
  const std::int64_t rest =
      std::clamp<std::int64_t>(reached % piece.unit_rows - piece.slab_row, 0, piece.rows_per_unit);
  return whole * piece.rows_per_unit + rest;
}

/// Sums what `body` says of every block of a rank's stage and its share of it.
template <class Body>
std::int64_t sum_over_blocks(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model,
                             const Body& body) {
  const Interval blocks = blocks_of_stage(model, table, layout, layout.mesh.index(rank, Axis::Pipeline));
  std::int64_t sum = 0;
  for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
    const BlockLayout& info = table.blocks()[block];
    sum += body(info, share_of(info, layout, layout.mesh.index(rank, Axis::Tensor)));
  }
  return sum;
}

std::int64_t divided(std::int64_t total, std::int64_t degree) {
  return (total + degree - 1) / degree;
}

}  // namespace

ParameterSlice slice_of(const ParamTable& table, const Placement& placement, const Parameter& parameter) {
  const std::int64_t width = table.slabs()[parameter.slab].width;
  std::int64_t rows = 0;
  for (const StoredPart& part : placement.parts) {
    if (part.slab != parameter.slab) continue;
    internal_check(part.elements.begin % width == 0 && part.elements.end % width == 0, "[plan] a row is cut");
    for (const ParameterPiece& piece : parameter.pieces) {
      rows += rows_before(piece, part.elements.end / width) - rows_before(piece, part.elements.begin / width);
    }
  }
  return parameter.transposed ? ParameterSlice{width, rows} : ParameterSlice{rows, width};
}

HeadRange heads_of(const BlockLayout& block, const BlockShare& share) {
  const std::int64_t each = block.parts_per_unit;
  HeadRange range{share.units, {share.units.begin * each, share.units.end * each}};
  if (!share.splits_parts) return range;
  const std::int64_t own = each / share.replicas;
  // Neighbours take, of each unit, their part of its parts; with one unit that is one range.
  range.parts.begin += share.replica * own;
  range.parts.end = range.parts.begin + own * share.units.size();
  return range;
}

Interval blocks_of_stage(const ModelSpec& model, const ParamTable& table, const Layout& layout, int stage) {
  const auto num_blocks = static_cast<std::int64_t>(table.blocks().size());
  const int num_stages = layout.mesh.size(Axis::Pipeline);
  if (num_stages == 1) return {0, num_blocks};
  const Interval layers = even_stages(model, num_stages, 1)[stage];
  std::vector<std::int64_t> first_block;  // of each layer
  std::int64_t block = 1;
  for (const LayerSpec& layer : model.layers) {
    first_block.push_back(block);
    const auto* moe = std::get_if<MoeSpec>(&layer.ffn);
    block += moe != nullptr && moe->shared_features > 0 ? 3 : 2;
  }
  first_block.push_back(block);
  return {stage == 0 ? 0 : first_block[layers.begin], stage == num_stages - 1 ? num_blocks : first_block[layers.end]};
}

std::int64_t stored_elements(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model) {
  const Interval blocks = blocks_of_stage(model, table, layout, layout.mesh.index(rank, Axis::Pipeline));
  const Placement placement = place(table, layout, rank);
  const int tied = table.panel_slab(static_cast<int>(table.blocks().size()) - 1, vocabulary_panels::kRows);
  std::int64_t elements = 0;
  for (const StoredPart& part : placement.parts) {
    const std::int64_t block = table.slabs()[part.slab].block;
    const bool is_used = blocks.begin <= block && block < blocks.end;
    const bool is_head = part.slab == tied && blocks.end == static_cast<std::int64_t>(table.blocks().size());
    if (is_used || is_head) elements += part.elements.size();
  }
  return elements;
}

StateBytes audit_state(std::int64_t elements, const Layout& layout, ElementType compute) {
  const std::int64_t ranks = layout.mesh.size(Axis::Data);
  const std::int64_t held = layout.zero == ZeroStage::Weights ? divided(elements, ranks) : elements;
  const std::int64_t optimized = layout.zero == ZeroStage::None ? elements : divided(elements, ranks);
  const Bytes sum_bytes = element_bytes(sum_type(compute));
  return {held * element_bytes(compute), held * sum_bytes, optimized * sum_bytes * num_optimizer_tensors(compute)};
}

std::int64_t cache_elements(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model) {
  return sum_over_blocks(table, layout, rank, model, cached_per_token);
}

std::int64_t recurrent_elements(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model) {
  return sum_over_blocks(table, layout, rank, model, recurrent_state);
}

}  // namespace octavo
