#include "octavo/trace/collective.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::string_view collective_name(Collective kind) {
  switch (kind) {
    case Collective::AllReduce:
      return "all_reduce";
    case Collective::ReduceScatter:
      return "reduce_scatter";
    case Collective::AllGather:
      return "all_gather";
    case Collective::Broadcast:
      return "broadcast";
    case Collective::Reduce:
      return "reduce";
    case Collective::AllToAll:
      return "all_to_all";
    case Collective::Send:
      return "send";
    case Collective::Receive:
      return "recv";
    case Collective::Barrier:
      return "barrier";
  }
  throw InternalError("[trace] collective_name: a value outside the enum.");
}

std::string_view call_kind_name(Collective kind, bool lends) {
  if (!lends) return collective_name(kind);
  switch (kind) {
    case Collective::Broadcast:
      return "share";
    case Collective::Send:
      return "lend";
    case Collective::Receive:
      return "borrow";
    default:
      throw InternalError(cat("[trace] call_kind_name: ", collective_name(kind), " cannot lend."));
  }
}

}  // namespace octavo
