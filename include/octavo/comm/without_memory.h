// What a reader of lent memory passes to Communicator::share() and borrow().
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo {

/// A contiguous tensor of these sizes whose storage has its size but no memory. Any device, meta too. Nothing is
/// allocated; reading it before it has borrowed memory is an error of libtorch's.
at::Tensor without_memory(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace octavo
