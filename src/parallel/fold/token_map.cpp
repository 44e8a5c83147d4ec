#include "parallel/fold/token_map.h"

#include <algorithm>

namespace octavo {

TokenMap::TokenMap(const TokenCut& cut, const std::vector<std::int64_t>& lengths) {
  const int num_chunks = cut.num_chunks();
  std::vector<int> owner(num_chunks), place(num_chunks);  // place: which of its owner's chunks
  for (int index = 0; index < cut.num_ranks; ++index) {
    const std::vector<int> own = cut.chunks(index);
    for (std::size_t i = 0; i < own.size(); ++i) {
      owner[own[i]] = index;
      place[own[i]] = static_cast<int>(i);
    }
  }
  const int chunks_per_rank = num_chunks / cut.num_ranks;
  for (const std::int64_t length : lengths) {
    const std::int64_t size = cut.chunk_size(length);
    for (int chunk = 0; chunk < num_chunks; ++chunk) {
      const std::int64_t begin = chunk * size;
      const std::int64_t tokens = std::clamp<std::int64_t>(length - begin, 0, size);
      chunks_.push_back({.owner = owner[chunk],
                         .here = num_held_ + place[chunk] * size,
                         .there = num_positions_ + begin,
                         .begin = begin,
                         .size = size,
                         .tokens = tokens,
                         .first_token = num_tokens_ + std::min(begin, length),
                         .sequence_there = num_positions_});
    }
    num_held_ += chunks_per_rank * size;
    num_positions_ += num_chunks * size;
    num_tokens_ += length;
  }
}

bool TokenMap::is_ordered() const {
  return std::all_of(chunks_.begin(), chunks_.end(), [this](const ChunkPlace& chunk) {
    return row(chunk, PositionOrder::Sequences) == row(chunk, PositionOrder::Ranks);
  });
}

}  // namespace octavo
