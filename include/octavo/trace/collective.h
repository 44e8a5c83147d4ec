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

}  // namespace octavo
