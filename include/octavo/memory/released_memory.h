// Tensors that outlive their memory: those that an autograd graph keeps, and those that peers lend to.
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo {

/// Frees the memory behind `tensor`, and behind all that share it, which stay valid objects that nobody may read.
void release_memory(const at::Tensor& tensor);

/// Gives it the memory of `source`, which has the same values at the same places and must not be used any more.
void restore_memory(const at::Tensor& tensor, const at::Tensor& source);

}  // namespace octavo
