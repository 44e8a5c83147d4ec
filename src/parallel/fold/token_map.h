// Where each chunk of each sequence lies: among the tokens of its rank, and among all in their own order.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/layout/token_spans.h"
#include "octavo/parallel/fold/position_order.h"

namespace octavo {

/// One chunk of one sequence.
struct ChunkPlace {
  int owner;                    // index of the rank that holds it
  std::int64_t here;            // its first row among the owner's tokens
  std::int64_t there;           // its first row among the padded positions of all sequences
  std::int64_t begin;           // its first position within its sequence
  std::int64_t size;            // positions, those of no token included
  std::int64_t tokens;          // of them that are tokens
  std::int64_t first_token;     // of these among the tokens of all sequences
  std::int64_t sequence_there;  // first row of its sequence, as `there`
};

class TokenMap {
 public:
  TokenMap(const TokenCut& cut, const std::vector<std::int64_t>& lengths);

  /// The first row of a chunk among the positions of all ranks in `order`.
  std::int64_t row(const ChunkPlace& chunk, PositionOrder order) const {
    return order == PositionOrder::Sequences ? chunk.there : chunk.owner * num_held_ + chunk.here;
  }
  /// Whether all orders are one.
  bool is_ordered() const;

  const std::vector<ChunkPlace>& chunks() const { return chunks_; }  // sequence by sequence, ascending
  std::int64_t num_held() const { return num_held_; }                // T: rows that every rank holds
  std::int64_t num_positions() const { return num_positions_; }      // S: of all ranks
  std::int64_t num_tokens() const { return num_tokens_; }            // M

 private:
  std::vector<ChunkPlace> chunks_;
  std::int64_t num_held_ = 0, num_positions_ = 0, num_tokens_ = 0;
};

}  // namespace octavo
