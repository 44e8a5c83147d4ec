// One rank of a world of any size, without its peers: the backend "record" of the dry run.
//
// Every operation checks its tensors and books what the backend that it stands for would book; it touches no values, so
// it works on meta tensors too. It allocates what that backend would (contiguous copies of non-contiguous tensors, and
// gloo's memory for what arrives, lent values included) and holds it and the tensors as long, so that memory can be
// accounted. Nothing is ever waited for; all times are zero.
#pragma once

#include <memory>

#include "octavo/comm/world.h"

namespace octavo {

/// The backends that move anything.
enum class Backend { Threads, Gloo };

/// Throws UsageError unless 0 <= rank < size.
std::unique_ptr<World> make_record_world(int rank, int size, Backend backend = Backend::Threads);

}  // namespace octavo
