#include "octavo/trace/collective.h"

#include "octavo/base/error.h"

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

}  // namespace octavo
