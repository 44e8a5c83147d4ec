#include "octavo/mesh/rank_group.h"

#include <doctest/doctest.h>

#include <array>

#include "octavo/base/error.h"

namespace octavo {
namespace {

const DeviceMesh kMesh({{Axis::Data, 2}, {Axis::Tensor, 4}});

TEST_CASE("a group is called after its axes") {
  CHECK(rank_group(kMesh, 5, std::array{Axis::Data}).name == "data");
  CHECK(rank_group(kMesh, 5, std::array{Axis::Data, Axis::Tensor}).name == "data+tensor");
  CHECK(rank_group(kMesh, 5, kAllAxes).name == "world");
  CHECK(rank_group(kMesh, 5, {}).name == "none");
  CHECK(rank_group(kMesh, 5, std::array{Axis::Data}).ranks == std::vector{1, 5});
  CHECK(rank_group(kMesh, 5, {}).ranks == std::vector{5});
}

TEST_CASE("neighbours along an axis are consecutive indices of it") {
  CHECK(neighbour_group(kMesh, 5, Axis::Tensor, 2).ranks == std::vector{4, 5});
  CHECK(neighbour_group(kMesh, 6, Axis::Tensor, 2).ranks == std::vector{6, 7});
  CHECK(neighbour_group(kMesh, 6, Axis::Tensor, 2).name == "tensor/2");
  CHECK(neighbour_group(DeviceMesh({{Axis::Tensor, 4}, {Axis::Data, 2}}), 5, Axis::Tensor, 2).ranks ==
        std::vector{5, 7});
  CHECK_THROWS_AS(neighbour_group(kMesh, 0, Axis::Tensor, 3), InternalError);
}

TEST_CASE("every rank names the cut of the world alike") {
  for (int rank = 0; rank < kMesh.world_size(); ++rank) {
    CHECK(rank_group(kMesh, rank, std::array{Axis::Tensor}).cut == "\"data=2 tensor=4\" over tensor");
  }
}

}  // namespace
}  // namespace octavo
