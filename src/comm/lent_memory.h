// Both ends of lending, on tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace octavo {

/// What keeps the memory of x alive, pointing at its first element; of borrowed memory, what keeps the owner's alive.
std::shared_ptr<const void> counted_memory(const at::Tensor& x);

/// The memory behind a tensor that has none of its own, for as long as this lives. Move-only.
class BorrowedMemory {
 public:
  BorrowedMemory() = default;  // of no tensor
  /// Memory of this rank's own, charged as communication, and counted on meta as elsewhere.
  static BorrowedMemory allocate(const at::Tensor& x);
  /// Memory of the owner.
  static BorrowedMemory of_owner(const at::Tensor& x, std::shared_ptr<const void> memory);

  BorrowedMemory(BorrowedMemory&& other) noexcept;
  BorrowedMemory& operator=(BorrowedMemory&& other) noexcept;
  ~BorrowedMemory() { take_away(); }

 private:
  explicit BorrowedMemory(at::Tensor x) : x_(std::move(x)) {}
  void take_away() noexcept;

  at::Tensor x_;
};

}  // namespace octavo
