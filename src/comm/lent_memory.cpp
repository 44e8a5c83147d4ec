#include "comm/lent_memory.h"

#include <ATen/ATen.h>

#include <utility>

#include "octavo/comm/without_memory.h"
#include "octavo/memory/account.h"
#include "octavo/memory/released_memory.h"

namespace octavo {
namespace {

/// What keeps an owner's memory alive: the context of a reader's pointer to it.
using Owner = std::shared_ptr<const void>;

void let_go(void* context) {
  delete static_cast<Owner*>(context);
}

}  // namespace

at::Tensor without_memory(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const c10::Device device = options.device();
  const std::size_t num_bytes = c10::multiply_integers(sizes) * options.dtype().itemsize();
  c10::Storage storage(c10::Storage::use_byte_size_t(), num_bytes, c10::DataPtr(nullptr, device),
                       /*allocator=*/nullptr, /*resizable=*/false);
  at::Tensor x = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(options.computeDispatchKey()), options.dtype());
  x.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return x;
}

std::shared_ptr<const void> counted_memory(const at::Tensor& x) {
  const c10::DataPtr& memory = x.storage().data_ptr();
  if (const Owner* owner = memory.cast_context<Owner>(&let_go)) return Owner(*owner, x.const_data_ptr());
  return Owner(std::make_shared<c10::Storage>(x.storage()), x.const_data_ptr());
}

BorrowedMemory BorrowedMemory::allocate(const at::Tensor& x) {
  const CategoryScope scope(MemoryCategory::Communication);
  const at::Tensor source = at::empty(x.sizes(), x.options().requires_grad(false));
  BorrowedMemory result(x);
  restore_memory(x, source);
  return result;
}

BorrowedMemory BorrowedMemory::of_owner(const at::Tensor& x, std::shared_ptr<const void> memory) {
  BorrowedMemory result(x);
  void* data = const_cast<void*>(memory.get());  // readers keep the rule
  x.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      c10::DataPtr(data, new Owner(std::move(memory)), &let_go, x.device()));
  return result;
}

BorrowedMemory::BorrowedMemory(BorrowedMemory&& other) noexcept : x_(std::exchange(other.x_, at::Tensor())) {}

BorrowedMemory& BorrowedMemory::operator=(BorrowedMemory&& other) noexcept {
  take_away();
  x_ = std::exchange(other.x_, at::Tensor());
  return *this;
}

void BorrowedMemory::take_away() noexcept {
  if (x_.defined()) release_memory(x_);
  x_.reset();
}

}  // namespace octavo
