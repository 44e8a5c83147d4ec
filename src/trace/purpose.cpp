#include "octavo/trace/purpose.h"

#include "octavo/base/error.h"

namespace octavo {

std::string_view purpose_name(Purpose purpose) {
  switch (purpose) {
    case Purpose::Weights:
      return "weights";
    case Purpose::Gradients:
      return "gradients";
    case Purpose::Activations:
      return "activations";
    case Purpose::KeysValues:
      return "keys_values";
    case Purpose::Norm:
      return "norm";
    case Purpose::Loss:
      return "loss";
    case Purpose::Control:
      return "control";
  }
  throw InternalError("[trace] purpose_name: a value outside the enum.");
}

}  // namespace octavo
