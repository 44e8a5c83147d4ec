// A collective as messages between pairs of ranks: pure arithmetic, so that the record backend can say what the gloo
// backend will send and allocate.
//
// Letters: R ranks, n elements of the call, M its bytes. Sums are always over ranks 0 .. R-1 in that order, by one rank
// per element, so every rank has the same bits.
//   all_reduce      each rank gets its part (direct_part) from everyone, sums it, sends the sum to everyone.
//                   Short ones: everyone sends all of it to everyone and sums it all: one step instead of two.
//   reduce          the same with the sums going to the root only. Two ranks or short: everything goes to the root.
//   reduce_scatter  each rank gets its part from everyone and sums it.
//   broadcast       the root sends each rank a part, which it passes on. Two ranks or short: the root sends all to all.
//   all_gather, all_to_all, barrier (one byte each)   everyone sends to everyone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/threads/lane.h"
#include "octavo/base/units.h"

namespace octavo {

enum class Place { In, Out, Scratch };

/// Elements [begin, begin + count) of the call's memory.
struct Span {
  Place place;
  std::int64_t begin;
  std::int64_t count;
};

struct Message {
  int peer;  // index in the group
  Span span;
};

struct LocalCopy {
  Span from;
  Span to;
};

struct LocalSum {
  Span out;
  std::vector<Span> sources;  // by rank
};

/// The sends may start when the phase before is over; the receives' memory is free from the beginning, because whoever
/// sends there has got what lay there before. Once all messages have arrived and left, the sum is made.
struct Phase {
  std::vector<LocalCopy> copies;
  std::vector<Message> sends;
  std::vector<Message> receives;
  std::optional<LocalSum> sum;
};

struct ExchangePlan {
  std::vector<Phase> phases;
  std::int64_t scratch_elements = 0;
  std::int64_t sent_elements = 0;  // by this rank; a barrier's elements are bytes
};

/// What this rank sends, as the ledger books it under `copied`.
Bytes sent_bytes(const ExchangePlan& plan, const RawCall& call);

/// What rank `index` of `num_ranks` does for `call`. Messages between two ranks have the same order on both sides.
ExchangePlan exchange_plan(const RawCall& call, int index, int num_ranks);

}  // namespace octavo
