#include "octavo/memory/released_memory.h"

#include <ATen/ATen.h>

#include <utility>

#include "octavo/base/error.h"

namespace octavo {

void release_memory(const at::Tensor& tensor) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, tensor.device()));
}

void restore_memory(const at::Tensor& tensor, const at::Tensor& source) {
  internal_check(tensor.sizes() == source.sizes() && tensor.strides() == source.strides() &&
                     tensor.storage_offset() == source.storage_offset(),
                 "[memory] restored memory of another shape");
  c10::DataPtr memory = source.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, source.device()));
  tensor.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
}

}  // namespace octavo
