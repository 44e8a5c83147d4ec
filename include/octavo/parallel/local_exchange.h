// A rank that holds every unit: nothing to exchange.
#pragma once

#include <memory>

#include "octavo/blocks/context.h"

namespace octavo {

std::unique_ptr<UnitExchange> make_local_exchange();

}  // namespace octavo
