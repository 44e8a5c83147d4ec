// What a group is called in messages and ledgers.
#pragma once

#include <span>
#include <string>

#include "octavo/mesh/axis.h"

namespace octavo {

/// "data", "data+fold"; "none" for no axes, which is a group of one.
std::string group_name(std::span<const Axis> axes);

}  // namespace octavo
