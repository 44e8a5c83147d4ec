// The axes of a layout: each is one way to cut a model's work (design: the idea in one table).
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace octavo {

enum class Axis { Pipeline, Data, Expert, Sequence, Fold, Tensor };

inline constexpr std::array kAllAxes = {Axis::Pipeline, Axis::Data, Axis::Expert,
                                        Axis::Sequence, Axis::Fold, Axis::Tensor};

/// "pipeline", "data", ... as written in a layout.
std::string_view axis_name(Axis axis);

/// The axis with that name; nullopt if there is none.
std::optional<Axis> axis_from_name(std::string_view name);

}  // namespace octavo
