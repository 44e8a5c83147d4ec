#include "octavo/layout/placement.h"

namespace octavo {

std::int64_t Placement::optimized_elements() const {
  std::int64_t sum = 0;
  for (const Interval& interval : optimized) sum += interval.size();
  return sum;
}

Placement place(const ParamTable& table, const Layout& layout, int rank, Bytes bucket_bytes) {
  const int data_degree = layout.mesh.size(Axis::Data);
  const int data_index = layout.mesh.index(rank, Axis::Data);
  const std::int64_t grain = kAlignmentElements * data_degree;
  Placement placement;
  std::int64_t offset = 0;
  Bucket bucket{0, -1, {0, 0}};
  const auto close_bucket = [&](int next_block) {
    offset = round_up(offset, grain);
    bucket.local.end = offset;
    placement.buckets.push_back(bucket);
    bucket = {next_block, next_block - 1, {offset, offset}};
  };
  const int num_blocks = static_cast<int>(table.blocks().size());
  const int num_slabs = static_cast<int>(table.slabs().size());
  int slab = 0;  // slabs are listed block by block
  for (int block = 0; block < num_blocks; ++block) {
    for (; slab < num_slabs && table.slabs()[slab].block == block; ++slab) {
      offset = round_up(offset, kAlignmentElements);
      placement.parts.push_back({slab, {0, table.slabs()[slab].elements()}, offset});
      offset += table.slabs()[slab].elements();
    }
    bucket.last_block = block;
    const Bytes bytes = (offset - bucket.local.begin) * element_bytes(ElementType::Float32);
    if (bytes >= bucket_bytes || block + 1 == num_blocks) close_bucket(block + 1);
  }
  placement.local_elements = offset;
  for (const Bucket& each : placement.buckets) {
    const Interval part = even_part(each.local.size(), data_degree, data_index, kAlignmentElements);
    const Interval own = {each.local.begin + part.begin, each.local.begin + part.end};
    placement.primary.push_back(own);
    placement.optimized.push_back(layout.zero == ZeroStage::Optimizer ? own : each.local);
  }
  return placement;
}

StateBytes state_bytes(const Placement& placement, ElementType compute) {
  const Bytes sum_bytes = element_bytes(sum_type(compute));
  const std::int64_t copies = compute == ElementType::BFloat16 ? 3 : 2;  // master weights, two moments
  return {placement.local_elements * element_bytes(compute), placement.local_elements * sum_bytes,
          placement.optimized_elements() * sum_bytes * copies};
}

Interval sequences_of(const Layout& layout, std::int64_t num_sequences, int data_index) {
  return even_part(num_sequences, layout.mesh.size(Axis::Data), data_index);
}

}  // namespace octavo
