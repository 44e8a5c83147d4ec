// GlooGroup's messages: how an operation is carried out on the helper thread of its lane.
#include <cstring>

#include "comm/c10d/gloo_group.h"
#include "comm/threads/call_text.h"
#include "comm/threads/sum.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// A connection to that member is broken.
struct BrokenPeer {
  int peer;
  std::string reason;
};

/// A call as the members compare it.
struct CallHeader {
  RawCall call;
  std::uint64_t number;
};

std::int64_t element_bytes(const RawCall& call) {
  return call.kind == Collective::Barrier ? 1 : wire_bytes(call.type);
}

std::byte* address(const GlooOperation& operation, const Span& span) {
  const std::int64_t offset = span.begin * element_bytes(operation.call);
  switch (span.place) {
    case Place::In:
      return const_cast<std::byte*>(operation.call.in) + offset;  // only read
    case Place::Out:
      return operation.call.out + offset;
    case Place::Scratch:
      return operation.scratch + offset;
  }
  throw InternalError("[comm] address: a place outside the enum.");
}

constexpr int kHeaderSlot = 0;
constexpr int kNumSlots = 4;  // a header and up to three messages of one operation, from one rank to another

}  // namespace

// A tag says which lane, operation and message of that operation it is. It comes again after 2^24 operations of the
// lane, long after the message before was read.
std::int32_t GlooGroup::next_tag(const GlooOperation& operation, int peer, bool sends, std::vector<int>& slots) const {
  enum Channel { kCollective, kPayload, kAnswer };
  const Collective kind = operation.call.kind;
  const Channel channel = !is_point_to_point(kind)              ? kCollective
                          : (kind == Collective::Send) == sends ? kPayload
                                                                : kAnswer;
  slots.resize(ranks_.size(), kHeaderSlot + 1);
  const std::uint64_t slot = slots[peer]++;
  internal_check(slot < kNumSlots, "[comm] next_tag: more messages than slots.");
  const std::uint64_t tag = (operation.number * kNumSlots + slot) * 4 + channel;
  return static_cast<std::int32_t>(tag & ((1u << 30) - 1));
}

/// Every receive of the operation, and the sends of its first phase.
void GlooGroup::start_messages(GlooOperation& operation) {
  const std::size_t num_phases = operation.plan.phases.size();
  operation.sends.resize(num_phases);
  operation.receives.resize(num_phases);
  operation.send_slots.clear();
  std::vector<int> slots;
  int peer = -1;
  try {
    for (std::size_t phase = 0; phase < num_phases; ++phase) {
      for (const Message& message : operation.plan.phases[phase].receives) {
        peer = message.peer;
        const std::int32_t tag = next_tag(operation, peer, /*sends=*/false, slots);
        operation.receives[phase].push_back(
            {peer, links_->receive(peer, address(operation, message.span),
                                   message.span.count * element_bytes(operation.call), tag)});
      }
    }
  } catch (const LinkFailure& error) {
    broken(operation, peer, error.what());
    return;
  }
  if (num_phases > 0) start_sends(operation, 0);
}

void GlooGroup::start_sends(GlooOperation& operation, std::size_t phase) {
  for (const Message& message : operation.plan.phases[phase].sends) {
    const std::int32_t tag = next_tag(operation, message.peer, /*sends=*/true, operation.send_slots);
    try {
      operation.sends[phase].push_back(
          {message.peer, links_->send(message.peer, address(operation, message.span),
                                      message.span.count * element_bytes(operation.call), tag)});
    } catch (const LinkFailure& error) {
      broken(operation, message.peer, error.what());
      return;
    }
  }
}

bool GlooGroup::carry_out(GlooOperation& operation) {
  try {
    if (!poison_.is_set() && rank_.check_calls() && size() > 1) {
      compare_calls(operation);
      if (!poison_.is_set()) start_messages(operation);
    }
    if (!poison_.is_set()) run_phases(operation);
  } catch (const BrokenPeer& broken_peer) {
    broken(operation, broken_peer.peer, broken_peer.reason);
  } catch (const std::exception& error) {
    fail(lost_rank(rank_.rank(), error.what()));
  }
  operation.waits_for = -1;
  if (poison_.is_set()) {
    // Returns when the connections are closed, whoever closes them: then the memory is free.
    if (links_) links_->close(to_note(poison_.failure()));
    return false;
  }
  operation.done = rank_.clock().now();
  return true;
}

void GlooGroup::run_phases(GlooOperation& operation) {
  for (std::size_t index = 0; index < operation.plan.phases.size(); ++index) {
    const Phase& phase = operation.plan.phases[index];
    if (index > 0) start_sends(operation, index);
    if (poison_.is_set()) return;
    for (const LocalCopy& copy : phase.copies) {
      std::byte* to = address(operation, copy.to);
      const std::byte* from = address(operation, copy.from);
      if (to != from) std::memcpy(to, from, copy.from.count * element_bytes(operation.call));
    }
    if (index < operation.receives.size()) {  // not if there are no messages at all
      wait_for(operation, operation.receives[index]);
      wait_for(operation, operation.sends[index]);
    }
    if (!phase.sum) continue;
    std::vector<const std::byte*> sources;
    for (const Span& source : phase.sum->sources) sources.push_back(address(operation, source));
    sum_over_ranks(operation.call.type, address(operation, phase.sum->out), sources, phase.sum->out.count);
  }
}

void GlooGroup::wait_for(GlooOperation& operation, std::vector<GlooOperation::Started>& messages) {
  for (auto& [peer, flight] : messages) wait_for(operation, peer, *flight);
}

void GlooGroup::wait_for(GlooOperation& operation, int peer, Flight& flight) {
  operation.waits_for = peer;
  try {
    flight.wait();
  } catch (const LinkFailure& error) {
    throw BrokenPeer{peer, error.what()};
  }
  operation.waits_for = -1;
}

void GlooGroup::compare_calls(GlooOperation& operation) {
  const RawCall& call = operation.call;
  std::vector<int> peers;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != index_ && (!is_point_to_point(call.kind) || peer == call.peer)) peers.push_back(peer);
  }
  CallHeader own{.call = call, .number = operation.number};
  own.call.in = own.call.out = nullptr;
  std::vector<CallHeader> headers(size());
  std::vector<GlooOperation::Started> sends, receives;
  for (const int peer : peers) {
    const auto tag = [&](bool is_send) {
      std::vector<int> slots(ranks_.size(), kHeaderSlot);
      return next_tag(operation, peer, is_send, slots);
    };
    auto* theirs = reinterpret_cast<std::byte*>(&headers[peer]);
    const auto* mine = reinterpret_cast<const std::byte*>(&own);
    try {
      receives.push_back({peer, links_->receive(peer, theirs, sizeof(CallHeader), tag(false))});
      sends.push_back({peer, links_->send(peer, mine, sizeof(CallHeader), tag(true))});
    } catch (const LinkFailure& error) {
      broken(operation, peer, error.what());
      break;
    }
  }
  try {
    wait_for(operation, receives);
    wait_for(operation, sends);
  } catch (const BrokenPeer& broken_peer) {
    broken(operation, broken_peer.peer, broken_peer.reason);  // closes: `headers` may go
    return;
  }
  if (poison_.is_set()) return;
  for (const int peer : peers) {
    if (calls_match(call, headers[peer].call)) continue;
    const std::string text = mismatch_text({.rank = rank_.rank(),
                                            .number = operation.number,
                                            .group = name_,
                                            .here = call,
                                            .there = headers[peer].call,
                                            .other = ranks_[peer]},
                                           ranks_);
    return fail({.rank = rank_.rank(), .kind = FailureKind::Mismatch, .text = text});
  }
}

/// A connection broke that this rank did not close: finds out why.
void GlooGroup::broken(const GlooOperation& operation, int peer, const std::string& reason) {
  if (poison_.is_set()) {
    links_->close(to_note(poison_.failure()));
    return;
  }
  const std::optional<std::string> farewell = links_->farewell(peer);
  std::optional<Failure> failure = farewell ? from_note(*farewell) : std::nullopt;
  if (!failure) failure = rank_.board().failure(prefix_);
  if (!failure) {
    const std::optional<RankEnd> end = rank_.board().end_of(ranks_[peer]);
    const std::string text = end ? cat("it returned while rank ", rank_.rank(), " was in ", operation_name(operation))
                                 : cat("its process ended or its connection broke (", reason, ")");
    failure =
        end && end->failed ? end->failure : Failure{.rank = ranks_[peer], .kind = FailureKind::RankLost, .text = text};
  }
  fail(*failure);
}

}  // namespace octavo
