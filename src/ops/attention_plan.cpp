#include "ops/attention_plan.h"

#include <algorithm>

#include "octavo/memory/account.h"

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

PairCount count_pairs(std::span<const AttentionPiece> pieces, std::span<const QueryBlock> blocks,
                      std::int64_t num_keys) {
  PairCount pairs{0, 0};
  for (const AttentionPiece& piece : pieces) {
    // Bottom right: the last query sees all keys, the one before it one less, and so on.
    pairs.visible += piece.q_len * piece.k_len - (piece.causal ? piece.q_len * (piece.q_len - 1) / 2 : 0);
  }
  for (const QueryBlock& block : blocks) {
    for (const KeySegment& whole : block.segments) {
      for (std::int64_t begin = 0; begin < num_keys; begin += kKeyStripe) {
        const KeySegment segment = within(whole, begin, std::min(begin + kKeyStripe, num_keys));
        // Products over kKeyBlock keys at a time, of which only the last is padded.
        if (segment.begin < segment.end) pairs.computed += padded(segment.end - segment.begin) * padded(block.rows);
      }
    }
  }
  return pairs;
}

void count_attention_flops(const PairCount& pairs, int num_products, std::int64_t num_heads, std::int64_t width) {
  const Flops per_pair = 2.0 * num_products * static_cast<Flops>(num_heads * width);
  count_flops({.matmul = 0,
               .attention = per_pair * static_cast<Flops>(pairs.visible),
               .attention_masked = per_pair * static_cast<Flops>(pairs.computed - pairs.visible)});
}

}  // namespace octavo::ops
