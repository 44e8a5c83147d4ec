// Strings of any length from all ranks of a group, on one of them: what reports are made of.
#pragma once

#include <string>
#include <vector>

#include "octavo/comm/communicator.h"

namespace octavo {

/// `own` of every rank, in the order of their indices, on index `root`; empty elsewhere. Collective. Throws CommError
/// on a lost peer.
std::vector<std::string> gather_bytes(Communicator& ranks, const std::string& own, int root);

}  // namespace octavo
