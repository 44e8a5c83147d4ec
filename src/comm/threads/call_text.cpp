#include "comm/threads/call_text.h"

#include "octavo/base/text.h"

namespace octavo {

bool is_point_to_point(Collective kind) {
  return kind == Collective::Send || kind == Collective::Receive;
}

std::string call_text(const RawCall& call, std::span<const int> ranks) {
  std::string text = cat(call_kind_name(call.kind, call.lends), " of ", call.count, " ", wire_name(call.type), " for ",
                         purpose_name(call.purpose));
  if (call.kind == Collective::Broadcast || call.kind == Collective::Reduce) {
    text += cat(" with root ", ranks[call.peer]);
  }
  return text;
}

std::string call_name(const CallName& name) {
  std::string text = cat(call_kind_name(name.call.kind, name.call.lends), " #", name.number, " over ", name.group);
  if (name.call.kind == Collective::Send) text += cat(" to rank ", name.peer);
  if (name.call.kind == Collective::Receive) text += cat(" from rank ", name.peer);
  if (name.step) text += cat(" at step ", *name.step);
  return text;
}

bool calls_match(const RawCall& a, const RawCall& b) {
  if (a.purpose != b.purpose || a.type != b.type || a.count != b.count || a.lends != b.lends) return false;
  return is_point_to_point(a.kind) || (a.kind == b.kind && a.peer == b.peer);
}

std::string mismatch_text(const CallMismatch& mismatch, std::span<const int> ranks) {
  return cat("[comm] rank ", mismatch.rank, ": op #", mismatch.number, " over ", mismatch.group, " is ",
             call_text(mismatch.here, ranks), " here but ", call_text(mismatch.there, ranks), " on rank ",
             mismatch.other, ". Every rank of a group must make the same calls in the same order.");
}

}  // namespace octavo
