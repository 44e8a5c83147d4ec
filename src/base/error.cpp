#include "octavo/base/error.h"

namespace octavo {

void internal_check(bool condition, const std::string& message) {
  if (!condition) throw InternalError(message);
}

}  // namespace octavo
