// A published order of layouts against the time model's.
#pragma once

#include <nlohmann/json.hpp>

#include "octavo/validation/time_validation.h"

namespace octavo {

/// `item`: a case of kind "ranking" whose candidates are written as degrees, "dp4.tp2.pp1.mbz8" or "tp2dp4"; what they
/// do not say is taken from a measured case of the same group with as many accelerators.
RankingResult rank(const nlohmann::json& item, const nlohmann::json& cases, const nlohmann::json& models);

}  // namespace octavo
