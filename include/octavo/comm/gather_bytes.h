// Text or bytes of every rank on one of them, or of one on all: reports, results, errors.
#pragma once

#include <string>
#include <vector>

#include "octavo/comm/communicator.h"

namespace octavo {

/// What every rank of the group gives, by index, on rank `root` of the group; an empty vector on the others. The
/// strings may differ in length and hold any bytes. Collective; booked as control traffic. Throws UsageError unless 0
/// <= root < size(), CommError on a lost peer.
std::vector<std::string> gather_bytes(Communicator& group, const std::string& own, int root);

/// `text` of rank 0 of the group on every rank; what the others give is not read. Collective; booked as control
/// traffic. Throws CommError on a lost peer.
std::string broadcast_bytes(Communicator& group, const std::string& text);

}  // namespace octavo
