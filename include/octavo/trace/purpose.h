// What a transfer is for: the second key of every ledger, beside the axis.
#pragma once

#include <string_view>

namespace octavo {

enum class Purpose { Weights, Gradients, Activations, KeysValues, Norm, Loss, Control };

/// "weights", "gradients", "activations", "keys_values", "norm", "loss", "control".
std::string_view purpose_name(Purpose purpose);

}  // namespace octavo
