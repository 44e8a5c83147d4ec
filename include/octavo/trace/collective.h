// The kinds of transfer that a ledger tells apart.
#pragma once

#include <array>
#include <string_view>

namespace octavo {

enum class Collective { AllReduce, ReduceScatter, AllGather, Broadcast, Reduce, AllToAll, Send, Receive, Barrier };

inline constexpr std::array kAllCollectives = {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather,
                                               Collective::Broadcast, Collective::Reduce,        Collective::AllToAll,
                                               Collective::Send,      Collective::Receive,       Collective::Barrier};

/// "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "send", "recv", "barrier".
std::string_view collective_name(Collective kind);
/// What a call is called: the same, but where a broadcast, send or recv `lends` memory instead of copying it, "share",
/// "lend" or "borrow". Throws InternalError for kinds that cannot.
std::string_view call_kind_name(Collective kind, bool lends);

}  // namespace octavo
