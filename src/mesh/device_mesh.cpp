#include "octavo/mesh/device_mesh.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

bool contains(std::span<const Axis> axes, Axis axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Distances from the first rank to every rank that differs from it only along the chosen axes, ascending.
// `chosen` tells which of `axes`, outermost first; outer strides exceed everything that inner axes add up to,
// so extending from the outermost axis inwards keeps the order.
template <class Chosen>
std::vector<int> offsets(std::span<const AxisSize> axes, int world_size, Chosen chosen) {
  std::vector<int> result = {0};
  int stride = world_size;
  for (const AxisSize& entry : axes) {
    stride /= entry.size;
    if (!chosen(entry.axis) || entry.size == 1) continue;
    std::vector<int> extended;
    extended.reserve(result.size() * static_cast<std::size_t>(entry.size));
    for (const int offset : result) {
      for (int i = 0; i < entry.size; ++i) extended.push_back(offset + i * stride);
    }
    result = std::move(extended);
  }
  return result;
}

}  // namespace

DeviceMesh::DeviceMesh(std::vector<AxisSize> axes) : axes_(std::move(axes)) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const AxisSize& entry = axes_[i];
    const std::string_view name = axis_name(entry.axis);
    if (entry.size < 1) {
      throw UsageError(cat("[mesh] ", name, "=", entry.size, ": an axis has at least one rank; use 1 or leave it out"));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (axes_[j].axis == entry.axis) {
        throw UsageError(cat("[mesh] ", name, "=", axes_[j].size, " and ", name, "=", entry.size,
                             ": an axis appears once; keep one of them"));
      }
    }
    product *= entry.size;
    if (product > INT_MAX) {
      throw UsageError(cat("[mesh] ", to_string(), ": the sizes multiply to more than ", INT_MAX, " ranks; lower one"));
    }
  }
  world_size_ = static_cast<int>(product);
}

int DeviceMesh::size(Axis axis) const {
  for (const AxisSize& entry : axes_) {
    if (entry.axis == axis) return entry.size;
  }
  return 1;
}

int DeviceMesh::index(int rank, Axis axis) const {
  check_rank(rank);
  const int distance = stride(axis);
  return distance == 0 ? 0 : rank / distance % size(axis);
}

int DeviceMesh::neighbour(int rank, Axis axis, int step) const {
  const int here = index(rank, axis);
  const std::int64_t num = size(axis);
  const std::int64_t there = ((static_cast<std::int64_t>(here) + step) % num + num) % num;
  return rank + (static_cast<int>(there) - here) * stride(axis);
}

std::vector<int> DeviceMesh::group(int rank, std::span<const Axis> axes) const {
  check_rank(rank);
  int first = rank;
  for (const AxisSize& entry : axes_) {
    if (contains(axes, entry.axis)) first -= index(rank, entry.axis) * stride(entry.axis);
  }
  std::vector<int> ranks = offsets(axes_, world_size_, [axes](Axis axis) { return contains(axes, axis); });
  for (int& member : ranks) member += first;
  return ranks;
}

std::vector<std::vector<int>> DeviceMesh::groups(std::span<const Axis> axes) const {
  const std::vector<int> inside = offsets(axes_, world_size_, [axes](Axis axis) { return contains(axes, axis); });
  std::vector<std::vector<int>> result;
  for (const int first : offsets(axes_, world_size_, [axes](Axis axis) { return !contains(axes, axis); })) {
    std::vector<int> ranks = inside;
    for (int& member : ranks) member += first;
    result.push_back(std::move(ranks));
  }
  return result;
}

std::string DeviceMesh::to_string() const {
  std::vector<std::string> parts;
  for (const AxisSize& entry : axes_) parts.push_back(cat(axis_name(entry.axis), "=", entry.size));
  return join(parts, " ");
}

int DeviceMesh::stride(Axis axis) const {
  int distance = 1;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].axis == axis) return distance;
    distance *= axes_[i].size;
  }
  return 0;
}

void DeviceMesh::check_rank(int rank) const {
  if (rank < 0 || rank >= world_size_) {
    throw UsageError(
        cat("[mesh] rank ", rank, " is outside the mesh \"", to_string(), "\"; ranks go from 0 to ", world_size_ - 1));
  }
}

}  // namespace octavo
