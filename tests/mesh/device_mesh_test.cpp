#include "octavo/mesh/device_mesh.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <map>

#include "octavo/base/error.h"

using namespace octavo;

namespace {

std::vector<DeviceMesh> some_meshes() {
  return {
      DeviceMesh({}),
      DeviceMesh({{Axis::Tensor, 1}}),
      DeviceMesh({{Axis::Data, 7}}),
      DeviceMesh({{Axis::Pipeline, 2}, {Axis::Data, 3}, {Axis::Tensor, 4}}),
      DeviceMesh({{Axis::Tensor, 3}, {Axis::Sequence, 1}, {Axis::Fold, 2}, {Axis::Data, 2}}),
      DeviceMesh({{Axis::Pipeline, 2},
                  {Axis::Data, 2},
                  {Axis::Expert, 1},
                  {Axis::Sequence, 2},
                  {Axis::Fold, 3},
                  {Axis::Tensor, 2}}),
  };
}

// Every subset of all axes, also of those that a mesh lacks.
std::vector<std::vector<Axis>> axis_subsets() {
  std::vector<std::vector<Axis>> subsets;
  for (unsigned bits = 0; bits < 1u << kAllAxes.size(); ++bits) {
    std::vector<Axis> subset;
    for (std::size_t i = 0; i < kAllAxes.size(); ++i) {
      if (bits >> i & 1u) subset.push_back(kAllAxes[i]);
    }
    subsets.push_back(subset);
  }
  return subsets;
}

std::map<Axis, int> coordinates(const DeviceMesh& mesh, int rank) {
  std::map<Axis, int> result;
  for (const Axis axis : kAllAxes) result[axis] = mesh.index(rank, axis);
  return result;
}

}  // namespace

TEST_CASE("the coordinates of a rank are its own, and within the sizes") {
  for (const DeviceMesh& mesh : some_meshes()) {
    CAPTURE(mesh.to_string());
    std::map<std::map<Axis, int>, int> seen;
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const std::map<Axis, int> here = coordinates(mesh, rank);
      for (const auto& [axis, index] : here) {
        CHECK(index >= 0);
        CHECK(index < mesh.size(axis));
      }
      CHECK(seen.emplace(here, rank).second);
    }
  }
}

TEST_CASE("the last axis varies fastest") {
  const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Tensor, 3}});
  CHECK(mesh.index(0, Axis::Tensor) == 0);
  CHECK(mesh.index(1, Axis::Tensor) == 1);
  CHECK(mesh.index(2, Axis::Data) == 0);
  CHECK(mesh.index(3, Axis::Data) == 1);
  CHECK(mesh.neighbour(0, Axis::Tensor, 1) == 1);
  CHECK(mesh.neighbour(0, Axis::Data, 1) == 3);
}

TEST_CASE("a neighbour differs only along its axis, by the step, and the step back returns") {
  for (const DeviceMesh& mesh : some_meshes()) {
    CAPTURE(mesh.to_string());
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      for (const Axis axis : kAllAxes) {
        for (const int step : {0, 1, -1, 5, -8}) {
          const int there = mesh.neighbour(rank, axis, step);
          std::map<Axis, int> expected = coordinates(mesh, rank);
          const int size = mesh.size(axis);
          expected[axis] = ((expected[axis] + step) % size + size) % size;
          CHECK(coordinates(mesh, there) == expected);
          CHECK(mesh.neighbour(there, axis, -step) == rank);
        }
      }
    }
  }
}

TEST_CASE("a group holds exactly the ranks that agree on all other axes, ascending") {
  for (const DeviceMesh& mesh : some_meshes()) {
    CAPTURE(mesh.to_string());
    for (const std::vector<Axis>& axes : axis_subsets()) {
      for (int rank = 0; rank < mesh.world_size(); ++rank) {
        std::vector<int> expected;
        for (int other = 0; other < mesh.world_size(); ++other) {
          std::map<Axis, int> moved = coordinates(mesh, other);
          for (const Axis axis : axes) moved[axis] = mesh.index(rank, axis);
          if (moved == coordinates(mesh, rank)) expected.push_back(other);
        }
        REQUIRE(mesh.group(rank, axes) == expected);
      }
    }
  }
}

TEST_CASE("the groups along some axes partition the world and are what each rank calls its group") {
  for (const DeviceMesh& mesh : some_meshes()) {
    CAPTURE(mesh.to_string());
    for (const std::vector<Axis>& axes : axis_subsets()) {
      std::vector<int> all;
      for (const std::vector<int>& ranks : mesh.groups(axes)) {
        for (const int rank : ranks) {
          all.push_back(rank);
          CHECK(mesh.group(rank, axes) == ranks);
        }
      }
      std::sort(all.begin(), all.end());
      std::vector<int> world(static_cast<std::size_t>(mesh.world_size()));
      for (int rank = 0; rank < mesh.world_size(); ++rank) world[static_cast<std::size_t>(rank)] = rank;
      CHECK(all == world);
    }
  }
}

TEST_CASE("a mesh of two thousand million ranks answers about one rank without visiting the others") {
  const DeviceMesh mesh({{Axis::Pipeline, 46340}, {Axis::Data, 23170}, {Axis::Tensor, 2}});
  const int last = mesh.world_size() - 1;
  CHECK(mesh.index(last, Axis::Pipeline) == 46339);
  CHECK(mesh.neighbour(last, Axis::Pipeline, 1) == 46339);
  CHECK(mesh.neighbour(last, Axis::Pipeline, INT_MAX) == mesh.neighbour(last, Axis::Pipeline, INT_MAX % 46340));
  CHECK(mesh.neighbour(0, Axis::Pipeline, INT_MIN) == mesh.neighbour(0, Axis::Pipeline, INT_MIN % 46340));
  const Axis tensor[] = {Axis::Tensor};
  for (int i = 0; i < 100'000; ++i) REQUIRE(mesh.group(last - i, tensor).size() == 2);
}

TEST_CASE("the text of a mesh names its axes outermost first") {
  CHECK(DeviceMesh({}).to_string() == "");
  CHECK(DeviceMesh({{Axis::Pipeline, 2}, {Axis::Data, 4}, {Axis::Tensor, 8}}).to_string() ==
        "pipeline=2 data=4 tensor=8");
  CHECK(DeviceMesh({{Axis::Fold, 1}}).to_string() == "fold=1");
}

TEST_CASE("a mesh without axes is one rank") {
  const DeviceMesh mesh({});
  CHECK(mesh.world_size() == 1);
  CHECK(mesh.size(Axis::Tensor) == 1);
  CHECK(mesh.index(0, Axis::Tensor) == 0);
  CHECK(mesh.neighbour(0, Axis::Tensor, 3) == 0);
  CHECK(mesh.group(0, kAllAxes) == std::vector<int>{0});
}

TEST_CASE("a mesh refuses sizes below one, axes that repeat and worlds beyond an int") {
  CHECK_THROWS_WITH_AS(DeviceMesh({{Axis::Tensor, 0}}),
                       "[mesh] tensor=0: an axis has at least one rank; use 1 or leave it out", UsageError);
  CHECK_THROWS_AS(DeviceMesh({{Axis::Tensor, -4}}), UsageError);
  CHECK_THROWS_WITH_AS(DeviceMesh({{Axis::Tensor, 2}, {Axis::Data, 2}, {Axis::Tensor, 4}}),
                       "[mesh] tensor=2 and tensor=4: an axis appears once; keep one of them", UsageError);
  CHECK_THROWS_AS(DeviceMesh({{Axis::Data, 65536}, {Axis::Tensor, 32768}}), UsageError);
  CHECK_THROWS_AS(DeviceMesh({{Axis::Data, INT_MAX}, {Axis::Tensor, INT_MAX}, {Axis::Fold, INT_MAX}}), UsageError);
  CHECK(DeviceMesh({{Axis::Data, INT_MAX}}).world_size() == INT_MAX);
}

TEST_CASE("a rank outside the mesh is refused everywhere") {
  const DeviceMesh mesh({{Axis::Data, 2}, {Axis::Tensor, 2}});
  for (const int rank : {-1, 4, INT_MAX, INT_MIN}) {
    CHECK_THROWS_AS(mesh.index(rank, Axis::Data), UsageError);
    CHECK_THROWS_AS(mesh.index(rank, Axis::Fold), UsageError);
    CHECK_THROWS_AS(mesh.neighbour(rank, Axis::Data, 1), UsageError);
    CHECK_THROWS_AS(mesh.group(rank, kAllAxes), UsageError);
  }
  CHECK_THROWS_WITH_AS(mesh.index(4, Axis::Data),
                       "[mesh] rank 4 is outside the mesh \"data=2 tensor=2\"; ranks go from 0 to 3", UsageError);
}
