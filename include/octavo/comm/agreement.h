// Ranks that were started with different options or inputs would train on nonsense without a word; so they compare
// first.
#pragma once

#include <string>
#include <vector>

#include "octavo/comm/communicator.h"

namespace octavo {

/// Collective. Throws UsageError on every rank, naming the first of `facts` that is not the same everywhere, with its
/// texts and two ranks that have them. CommError on a lost peer.
void require_agreement(Communicator& ranks, const std::vector<std::string>& facts);

}  // namespace octavo
