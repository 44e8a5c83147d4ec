// The work of each collective in memory: everybody reads from everybody, each rank writes what is its own to write.
#pragma once

#include "comm/threads/operation.h"

namespace octavo {

/// What the rank does once all calls are posted. Reads peers' memory; reduce also writes this rank's part of the
/// root's.
void first_phase(Operation& operation);

/// all_reduce only, once all parts are summed: copies the others' parts.
void second_phase(Operation& operation);

/// Whether peers touch this rank's memory, so that it must wait until all of them are done.
bool peers_touch(const Operation& operation);

}  // namespace octavo
