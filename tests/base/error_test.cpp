#include "octavo/base/error.h"

#include <doctest/doctest.h>

using namespace octavo;

TEST_CASE("internal_check throws its message only when the condition fails") {
  CHECK_NOTHROW(internal_check(true, "[base] unused"));
  CHECK_THROWS_WITH_AS(internal_check(false, "[base] two and two are five"), "[base] two and two are five",
                       InternalError);
}
