// Who sits where: ranks laid out on named axes. Pure arithmetic -- no sockets, no devices,
// no torch -- so a planner or a unit test may build a mesh of millions of ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "octavo/mesh/axis.h"

namespace octavo {

struct AxisSize {
  Axis axis;
  int size;  // ranks along the axis, >= 1
};

class DeviceMesh {
 public:
  /// Lays ranks 0 .. world_size()-1 over `axes`, outermost first. The last axis varies fastest:
  /// put the one that talks most (usually Tensor) last, so its ranks are neighbours. No axes: one rank.
  /// Throws UsageError if an axis repeats, a size is < 1, or the product exceeds INT_MAX.
  explicit DeviceMesh(std::vector<AxisSize> axes);

  int world_size() const { return world_size_; }  // ranks; the product of all sizes
  std::span<const AxisSize> axes() const { return axes_; }
  int size(Axis axis) const;  // ranks along `axis`; 1 if this mesh lacks it

  /// Position of `rank` along `axis`, in [0, size(axis)); 0 if the mesh lacks the axis.
  /// Throws UsageError unless 0 <= rank < world_size(); so do neighbour() and group().
  int index(int rank, Axis axis) const;

  /// The rank `step` places further along `axis`, wrapping round: a ring neighbour. `step` may be negative.
  int neighbour(int rank, Axis axis, int step) const;

  /// Ranks that differ from `rank` only along `axes`, ascending; includes `rank`.
  std::vector<int> group(int rank, std::span<const Axis> axes) const;

  /// All such groups, each rank in exactly one, in the same order on every rank: the order in
  /// which communicators must be created, because creating one is collective.
  std::vector<std::vector<int>> groups(std::span<const Axis> axes) const;

  /// "pipeline=2 data=4 tensor=8"; "one rank" has the empty text. Parses back as a layout.
  std::string to_string() const;

 private:
  int stride(Axis axis) const;  // distance in ranks of two neighbours along `axis`; 0 if absent
  void check_rank(int rank) const;

  std::vector<AxisSize> axes_;
  int world_size_ = 1;
};

}  // namespace octavo
