#include "octavo/layout/share.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// "1, 2 or 4": the degrees up to `most` that divide `units`.
std::string fitting_degrees(std::int64_t units, std::int64_t most) {
  std::vector<std::string> degrees;
  for (std::int64_t degree = 1; degree <= std::min(units, most); ++degree) {
    if (units % degree == 0) degrees.push_back(cat(degree));
  }
  const std::string last = degrees.back();
  degrees.pop_back();
  return degrees.empty() ? last : cat(join(degrees, ", "), " or ", last);
}

/// `divisor`: degrees that divide it are fine.
[[noreturn]] void refuse(const BlockLayout& block, int degree, std::int64_t divisor) {
  throw UsageError(cat("[layout] ", block.name, ": ", block.num_units, " ", unit_name(block.kind),
                       " over tensor=", degree, " do not divide; use tensor=", fitting_degrees(divisor, degree),
                       ", or say how to run it: tensor=", degree, ":replicate or tensor=", degree, ":pad"));
}

}  // namespace

std::int64_t BlockShare::rows_per_unit(const PanelLayout& panel) const {
  std::int64_t rows = 0;
  for (const PanelSection& section : panel.sections) rows += rows_per_unit(section);
  return rows;
}

void check_divides(std::span<const BlockLayout> blocks, const Layout& layout) {
  const int degree = layout.mesh.size(Axis::Tensor);
  if (layout.misfit != Misfit::Refuse) return;
  std::int64_t divisor = 0;
  for (const BlockLayout& block : blocks) divisor = std::gcd(divisor, block.num_units);
  for (const BlockLayout& block : blocks) {
    if (block.num_units % degree != 0) refuse(block, degree, divisor);
  }
}

BlockShare share_of(const BlockLayout& block, const Layout& layout, int tensor_index) {
  const int degree = layout.mesh.size(Axis::Tensor);
  const std::int64_t units = block.num_units;
  const auto even = [units](std::int64_t size, std::int64_t index) {
    return Interval{std::min(units, size * index), std::min(units, size * (index + 1))};
  };
  if (units % degree == 0) return {.units = even(units / degree, tensor_index)};
  switch (layout.misfit) {
    case Misfit::Refuse:
      refuse(block, degree, units);
    case Misfit::Replicate: {
      const auto shares = static_cast<int>(std::gcd(units, static_cast<std::int64_t>(degree)));
      const int replicas = degree / shares;
      return {.units = even(units / shares, tensor_index / replicas),
              .replicas = replicas,
              .replica = tensor_index % replicas,
              .splits_parts = block.parts_per_unit % replicas == 0};
    }
    case Misfit::Pad: {
      const std::int64_t size = (units + degree - 1) / degree;
      const Interval own = even(size, tensor_index);
      return {.units = own, .num_padded = size - own.size()};
    }
  }
  throw InternalError("[layout] unknown way to treat a misfit");
}

}  // namespace octavo
