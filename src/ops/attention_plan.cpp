#include "ops/attention_plan.h"

#include <algorithm>

namespace octavo::ops {

std::vector<QueryBlock> plan_attention(std::span<const AttentionPiece> pieces) {
  std::vector<std::int64_t> borders;
  for (const AttentionPiece& piece : pieces) {
    borders.push_back(piece.q_begin);
    borders.push_back(piece.q_begin + piece.q_len);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());

  std::vector<QueryBlock> blocks;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    for (std::int64_t begin = borders[i]; begin < borders[i + 1]; begin += kQueryBlock) {
      blocks.push_back({begin, std::min(kQueryBlock, borders[i + 1] - begin), {}});
    }
  }
  for (const AttentionPiece& piece : pieces) {
    if (piece.q_len == 0 || piece.k_len == 0) continue;
    const std::int64_t k_end = piece.k_begin + piece.k_len;
    auto block = std::lower_bound(blocks.begin(), blocks.end(), piece.q_begin,
                                  [](const QueryBlock& b, std::int64_t query) { return b.begin < query; });
    for (; block != blocks.end() && block->begin < piece.q_begin + piece.q_len; ++block) {
      // Bottom right: the piece's last query sees all k_len keys.
      const std::int64_t diagonal = piece.causal ? k_end - piece.q_len + (block->begin - piece.q_begin) + 1 : k_end;
      const std::int64_t visible_end = piece.causal ? std::min(k_end, diagonal + block->rows - 1) : k_end;
      block->segments.push_back({piece.k_begin, visible_end, diagonal});
    }
  }
  std::erase_if(blocks, [](const QueryBlock& block) { return block.segments.empty(); });
  return blocks;
}

KeySegment within(const KeySegment& segment, std::int64_t begin, std::int64_t end) {
  return {std::max(segment.begin, begin), std::min(segment.end, end), segment.diagonal};
}

}  // namespace octavo::ops
