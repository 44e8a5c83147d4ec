// The rotary tables of the tokens that a rank holds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "octavo/ops/rope.h"

namespace octavo {

/// Rows [row, row + size) hold the positions from `begin` on.
struct PositionRun {
  std::int64_t row, begin, size;
};

class PositionTables {
 public:
  /// `runs` cover `num_rows` rows. `options`: dtype and device of the activations.
  PositionTables(std::int64_t num_rows, std::vector<PositionRun> runs, const at::TensorOptions& options)
      : num_rows_(num_rows), runs_(std::move(runs)), options_(options) {}

  /// Valid until another spec or width is asked for.
  const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim);

 private:
  struct NamedTable {
    RopeSpec spec;
    std::int64_t head_dim;
    ops::RopeTable table;
  };

  at::Tensor positions() const;

  std::int64_t num_rows_;
  std::vector<PositionRun> runs_;
  at::TensorOptions options_;
  std::optional<NamedTable> table_;
};

}  // namespace octavo
