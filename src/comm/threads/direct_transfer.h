// What a call of rank threads is booked as; the record backend books the same.
#pragma once

#include "comm/threads/lane.h"
#include "octavo/trace/ledger.h"

namespace octavo {

/// All but the ledger's group and the time. `index` of `num_ranks` > 1 ranks.
Transfer direct_transfer(const RawCall& call, int index, int num_ranks);

}  // namespace octavo
