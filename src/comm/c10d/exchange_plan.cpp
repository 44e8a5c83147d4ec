#include "comm/c10d/exchange_plan.h"

#include "octavo/base/units.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

constexpr Bytes kShortSum = 4 << 10;    // all_reduce in one step up to this size
constexpr Bytes kShortRoot = 64 << 10;  // broadcast and reduce straight from and to the root up to this size

class Planner {
 public:
  Planner(const RawCall& call, int index, int num_ranks) : call_(call), here_(index), size_(num_ranks) {}

  ExchangePlan plan() {
    const Bytes message = call_.count * wire_bytes(call_.type);
    const bool by_root = size_ == 2 || message <= kShortRoot;
    switch (call_.kind) {
      case Collective::AllReduce:
        message <= kShortSum ? sum_everywhere() : sum_parts(std::nullopt);
        break;
      case Collective::Reduce:
        by_root ? sum_at_root() : sum_parts(call_.peer);
        break;
      case Collective::ReduceScatter:
        reduce_scatter();
        break;
      case Collective::AllGather:
        copy({Place::In, 0, call_.count}, {Place::Out, here_ * call_.count, call_.count});
        for_each_peer([&](int peer) {
          send(peer, {Place::In, 0, call_.count});
          receive(peer, {Place::Out, peer * call_.count, call_.count});
        });
        break;
      case Collective::AllToAll:
        copy({Place::In, here_ * call_.count, call_.count}, {Place::Out, here_ * call_.count, call_.count});
        for_each_peer([&](int peer) {
          send(peer, {Place::In, peer * call_.count, call_.count});
          receive(peer, {Place::Out, peer * call_.count, call_.count});
        });
        break;
      case Collective::Broadcast:
        by_root ? broadcast_from_root() : broadcast_parts();
        break;
      case Collective::Send:
        send(call_.peer, {Place::In, 0, call_.count});
        break;
      case Collective::Receive:
        receive(call_.peer, {Place::Out, 0, call_.count});
        break;
      case Collective::Barrier:
        for_each_peer([&](int peer) {
          send(peer, scratch(1));
          receive(peer, scratch(1));
        });
        break;
    }
    return std::move(plan_);
  }

 private:
  /// Neighbours upwards first: no two ranks begin with the same one.
  template <class Visit>
  void for_each_peer(const Visit& visit) {
    for (int step = 1; step < size_; ++step) visit((here_ + step) % size_);
  }

  Phase& phase() {
    if (plan_.phases.empty()) plan_.phases.emplace_back();
    return plan_.phases.back();
  }
  void send(int peer, Span span) {
    if (span.count == 0) return;
    phase().sends.push_back({peer, span});
    plan_.sent_elements += span.count;
  }
  void receive(int peer, Span span) {
    if (span.count > 0) phase().receives.push_back({peer, span});
  }
  void copy(Span from, Span to) {
    if (from.count > 0) phase().copies.push_back({from, to});
  }
  Span scratch(std::int64_t count) {
    const std::int64_t begin = plan_.scratch_elements;
    plan_.scratch_elements += count;
    return {Place::Scratch, begin, count};
  }
  Span part_of(Place place, int rank) const {
    const Part part = direct_part(call_.count, size_, rank);
    return {place, part.begin, part.size()};
  }

  /// Gets everyone's addend for `own` into scratch and sums them into `out`.
  void gather_and_sum(const Span& own, const Span& out) {
    if (own.count == 0) return;
    std::vector<Span> sources(size_);
    sources[here_] = own;
    for_each_peer([&](int peer) {
      sources[peer] = scratch(own.count);
      receive(peer, sources[peer]);
    });
    phase().sum = {out, std::move(sources)};
  }

  void sum_everywhere() {
    const Span all{Place::In, 0, call_.count};
    for_each_peer([&](int peer) { send(peer, all); });
    gather_and_sum(all, {Place::Out, 0, call_.count});
  }

  void sum_at_root() {
    const Span all{Place::In, 0, call_.count};
    if (here_ == call_.peer) {
      gather_and_sum(all, {Place::Out, 0, call_.count});
    } else {
      send(call_.peer, all);
    }
  }

  /// Everyone sums a part; the sums go to everyone, or to `root`.
  void sum_parts(std::optional<int> root) {
    for_each_peer([&](int peer) { send(peer, part_of(Place::In, peer)); });
    const Span own = part_of(Place::In, here_);
    // A rank that is not the root keeps its values.
    const bool keeps = root && *root != here_;
    const Span sum = keeps && own.count > 0 ? scratch(own.count) : part_of(Place::Out, here_);
    gather_and_sum(own, sum);
    plan_.phases.emplace_back();
    for_each_peer([&](int peer) {
      if (!root || peer == *root) send(peer, {sum.place, sum.begin, own.count});
      if (!root || here_ == *root) receive(peer, part_of(Place::Out, peer));
    });
  }

  void reduce_scatter() {
    for_each_peer([&](int peer) { send(peer, {Place::In, peer * call_.count, call_.count}); });
    gather_and_sum({Place::In, here_ * call_.count, call_.count}, {Place::Out, 0, call_.count});
  }

  void broadcast_from_root() {
    const Span all{Place::Out, 0, call_.count};
    if (here_ == call_.peer) {
      for_each_peer([&](int peer) { send(peer, all); });
    } else {
      receive(call_.peer, all);
    }
  }

  void broadcast_parts() {
    const int root = call_.peer;
    if (here_ == root) {
      for_each_peer([&](int peer) { send(peer, part_of(Place::Out, peer)); });
      for_each_peer([&](int peer) { send(peer, part_of(Place::Out, here_)); });
      return;
    }
    receive(root, part_of(Place::Out, here_));
    plan_.phases.emplace_back();
    for_each_peer([&](int peer) {
      if (peer != root) send(peer, part_of(Place::Out, here_));
      receive(peer, part_of(Place::Out, peer));
    });
  }

  const RawCall& call_;
  const int here_;
  const int size_;
  ExchangePlan plan_;
};

}  // namespace

Bytes sent_bytes(const ExchangePlan& plan, const RawCall& call) {
  return plan.sent_elements * (call.kind == Collective::Barrier ? 1 : wire_bytes(call.type));
}

ExchangePlan exchange_plan(const RawCall& call, int index, int num_ranks) {
  return Planner(call, index, num_ranks).plan();
}

}  // namespace octavo
