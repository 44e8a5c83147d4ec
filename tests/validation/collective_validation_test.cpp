#include "octavo/validation/collective_validation.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "octavo/base/json.h"

using namespace octavo;

TEST_CASE("measured collectives are met within 15 % from 1 MiB and 30 % below and copies within 10 %") {
  const std::string path = "tests/data/golden/hardware.json";
  const auto rows = validate_collectives(parse_json(read_text_file(path, path), path));
  CHECK(rows.size() == 30);
  for (const ValidationRow& row : rows) {
    CAPTURE(row.id);
    CAPTURE(row.why);
    CHECK(row.is_within());
    CHECK(row.tolerance <= (row.quantity == "gb_per_s" ? 0.1 : 0.3));
  }
}
