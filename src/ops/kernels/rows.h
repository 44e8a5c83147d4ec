// The rows of a strided array, visited in row-major order. q inside one qkv matrix, for example, has rows (token, KV
// head, query head of the KV head) with a stride for each.
#pragma once

#include <cstdint>

namespace octavo::ops::kernels {

/// Up to three dimensions of rows, outermost first; strides in elements.
struct Rows {
  std::int64_t size[3] = {1, 1, 1};
  std::int64_t stride[3] = {0, 0, 0};

  std::int64_t count() const { return size[0] * size[1] * size[2]; }
};

/// Walks over Rows without a division per row. Must not be advanced more than count() times.
class RowCursor {
 public:
  explicit RowCursor(const Rows& rows) : rows_(rows) {}

  /// Elements from the array's first row to the current one.
  std::int64_t offset() const { return offset_; }

  void advance() {
    offset_ += rows_.stride[2];
    if (++index_[2] < rows_.size[2]) return;
    index_[2] = 0;
    offset_ += rows_.stride[1] - rows_.size[2] * rows_.stride[2];
    if (++index_[1] < rows_.size[1]) return;
    index_[1] = 0;
    offset_ += rows_.stride[0] - rows_.size[1] * rows_.stride[1];
  }

 private:
  const Rows rows_;
  std::int64_t index_[3] = {0, 0, 0};
  std::int64_t offset_ = 0;
};

}  // namespace octavo::ops::kernels
