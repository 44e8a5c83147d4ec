#include "octavo/ops/embedding.h"

#include <ATen/ATen.h>

#include <cstring>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::ops {
namespace {

template <class Source, class Sum>
void add_rows(Sum* gradient, const std::int64_t* ids, const Source* dx, std::int64_t tokens, std::int64_t width) {
  for (std::int64_t t = 0; t < tokens; ++t) {
    Sum* row = gradient + ids[t] * width;
    const Source* source = dx + t * width;
    for (std::int64_t i = 0; i < width; ++i) row[i] += static_cast<Sum>(source[i]);
  }
}

}  // namespace

at::Tensor embedding_forward(const at::Tensor& ids, const at::Tensor& rows) {
  at::Tensor out = at::empty({ids.size(0), rows.size(1)}, rows.options());
  if (rows.is_meta()) return out;
  const std::size_t row_bytes = rows.size(1) * rows.element_size();
  const auto* source = static_cast<const char*>(rows.const_data_ptr());
  auto* target = static_cast<char*>(out.data_ptr());
  const std::int64_t* id = ids.const_data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < ids.size(0); ++t) {
    if (id[t] < 0 || id[t] >= rows.size(0)) {
      throw UsageError(cat("[ops] token ", t, " has id ", id[t], "; the vocabulary has rows 0 to ", rows.size(0) - 1,
                           ". Use data made with this model's tokenizer"));
    }
    std::memcpy(target + t * row_bytes, source + id[t] * row_bytes, row_bytes);
  }
  return out;
}

void embedding_backward_(const at::Tensor& gradient, const at::Tensor& ids, const at::Tensor& dx) {
  if (gradient.is_meta()) return;
  const at::Tensor source = dx.contiguous();
  const std::int64_t* id = ids.const_data_ptr<std::int64_t>();
  const std::int64_t tokens = ids.size(0), width = gradient.size(1);
  if (gradient.scalar_type() == at::kDouble) {
    add_rows(gradient.data_ptr<double>(), id, source.const_data_ptr<double>(), tokens, width);
  } else if (source.scalar_type() == at::kBFloat16) {
    add_rows(gradient.data_ptr<float>(), id, source.const_data_ptr<at::BFloat16>(), tokens, width);
  } else {
    add_rows(gradient.data_ptr<float>(), id, source.const_data_ptr<float>(), tokens, width);
  }
}

}  // namespace octavo::ops
