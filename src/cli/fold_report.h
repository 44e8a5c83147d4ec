// What the fold axis does with a micro-batch, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "octavo/layout/fold_choice.h"

namespace octavo::cli {

/// Positions of the first micro-batch of a rank that takes most sequences: the work that forms are shown for.
std::int64_t shown_positions(const Layout& layout, std::int64_t batch, std::int64_t sequence_length,
                             std::int64_t micro_batch);

/// Which blocks have which form and what that sends; and what it costs where units do not divide. Empty without the
/// axis.
std::vector<std::string> fold_notes(const ParamTable& table, const Layout& layout, const FoldWork& work,
                                    std::int64_t sequence_length);

/// From how many positions on `auto` takes which form, where the layout asks for it; and the same costs.
std::vector<std::string> fold_layout_notes(const ParamTable& table, const Layout& layout, ElementType compute);

/// {"positions": .., "blocks": [{"kind", "forward", "backward", "sent_bytes": {..}}], "notes": [..]}; bytes per rank,
/// by direction and form, of one block of each kind. null without the axis.
nlohmann::json fold_json(const ParamTable& table, const Layout& layout, const FoldWork& work,
                         std::int64_t sequence_length);

}  // namespace octavo::cli
