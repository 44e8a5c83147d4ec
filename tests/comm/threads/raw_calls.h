// Short spellings of raw calls on vectors, for the tests of the transport.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/threads/rank_threads.h"
#include "comm/threads/thread_group.h"
#include "octavo/mesh/rank_group.h"

namespace octavo {

template <class T>
constexpr WireType element_type() {
  if constexpr (sizeof(T) == 4) return WireType::F32;
  if constexpr (std::is_integral_v<T>) return WireType::I64;
  return WireType::F64;
}

template <class T>
RawCall raw_call(Collective kind, const T* in, T* out, std::int64_t count, int peer = 0) {
  return {.kind = kind,
          .purpose = Purpose::Activations,
          .type = element_type<T>(),
          .peer = peer,
          .count = count,
          .in = reinterpret_cast<const std::byte*>(in),
          .out = reinterpret_cast<std::byte*>(out)};
}

/// all_reduce, broadcast or reduce, in place.
template <class T>
RawCall in_place(Collective kind, std::vector<T>& x, int root = 0) {
  return raw_call(kind, x.data(), x.data(), static_cast<std::int64_t>(x.size()), root);
}

/// The owner's or a reader's side of lent memory: a broadcast, send or recv.
template <class T>
RawCall lending(Collective kind, const T* owned, std::int64_t count, int peer) {
  RawCall call = raw_call<T>(kind, owned, nullptr, count, peer);
  call.lends = true;
  return call;
}

inline RawCall barrier_call() {
  return {};
}

/// All ranks of the world in one group.
inline std::unique_ptr<ThreadGroup> everyone(ThreadRank& rank) {
  const std::vector axes = {Axis::Data};
  return rank.split(rank_group(DeviceMesh({{Axis::Data, rank.size()}}), rank.rank(), axes));
}

inline RankThreadOptions ranks(int num_ranks, std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  return {.num_ranks = num_ranks, .deadline = deadline};
}

}  // namespace octavo
