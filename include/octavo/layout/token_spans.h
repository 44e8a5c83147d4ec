// How the tokens of a sequence are cut over the ranks of an axis.
//
// Letters: S tokens of the sequence, D ranks, C tokens of a chunk.
//   zigzag      2D chunks of C = ceil(S / 2D); index p holds chunks p and 2D-1-p: under a causal mask every rank has
//   the
//               same pairs of queries and keys
//   contiguous  D chunks of C = ceil(S / D); index p holds chunk p
// Behind the last token the chunks are filled up with positions of no token: they come last, so that no token sees
// them, and they have no label. A sequence then has padded_length() positions.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/layout/interval.h"
#include "octavo/layout/layout.h"

namespace octavo {

struct TokenCut {
  TokenOrder order = TokenOrder::Zigzag;
  int num_ranks = 1;

  int num_chunks() const { return order == TokenOrder::Zigzag && num_ranks > 1 ? 2 * num_ranks : num_ranks; }
  /// C, for a sequence of `length` tokens.
  std::int64_t chunk_size(std::int64_t length) const { return (length + num_chunks() - 1) / num_chunks(); }
  std::int64_t padded_length(std::int64_t length) const { return chunk_size(length) * num_chunks(); }
  /// The chunks that index `index` holds, ascending.
  std::vector<int> chunks(int index) const;
};

}  // namespace octavo
