#include "octavo/mesh/axis.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace octavo;

TEST_CASE("every axis has its own name and is found by it") {
  std::set<std::string_view> names;
  for (const Axis axis : kAllAxes) {
    names.insert(axis_name(axis));
    CHECK(axis_from_name(axis_name(axis)) == axis);
  }
  CHECK(names.size() == kAllAxes.size());
}

TEST_CASE("a word that names no axis is no axis") {
  CHECK(axis_from_name("") == std::nullopt);
  CHECK(axis_from_name("Tensor") == std::nullopt);
  CHECK(axis_from_name("tensors") == std::nullopt);
}
