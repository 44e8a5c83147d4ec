#include "octavo/ops/embedding.h"

#include <ATen/ATen.h>

#include <cstring>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::ops {
namespace {

template <class Source, class Sum>
void add_rows(const at::Tensor& gradient, const at::Tensor& ids, const Source* dx, std::int64_t first_row) {
  const std::int64_t* id = ids.const_data_ptr<std::int64_t>();
  const std::int64_t width = gradient.size(1);
  for (std::int64_t t = 0; t < ids.size(0); ++t) {
    const std::int64_t place = id[t] - first_row;
    if (place < 0 || place >= gradient.size(0)) continue;
    Sum* row = gradient.data_ptr<Sum>() + place * width;
    const Source* source = dx + t * width;
    for (std::int64_t i = 0; i < width; ++i) row[i] += static_cast<Sum>(source[i]);
  }
}

}  // namespace

at::Tensor embedding_forward(const at::Tensor& ids, const at::Tensor& rows, std::int64_t first_row,
                             std::int64_t vocab_size) {
  at::Tensor out = at::empty({ids.size(0), rows.size(1)}, rows.options());
  if (rows.is_meta()) return out;
  const std::size_t row_bytes = rows.size(1) * rows.element_size();
  const auto* source = static_cast<const char*>(rows.const_data_ptr());
  auto* target = static_cast<char*>(out.data_ptr());
  const std::int64_t* id = ids.const_data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < ids.size(0); ++t) {
    if (id[t] < 0 || id[t] >= vocab_size) {
      throw UsageError(cat("[ops] token ", t, " has id ", id[t], "; the vocabulary has rows 0 to ", vocab_size - 1,
                           ". Use data made with this model's tokenizer"));
    }
    const std::int64_t place = id[t] - first_row;
    if (place >= 0 && place < rows.size(0)) {
      std::memcpy(target + t * row_bytes, source + place * row_bytes, row_bytes);
    } else {
      std::memset(target + t * row_bytes, 0, row_bytes);
    }
  }
  return out;
}

void embedding_backward_(const at::Tensor& gradient, const at::Tensor& ids, const at::Tensor& dx,
                         std::int64_t first_row) {
  if (gradient.is_meta()) return;
  const at::Tensor source = dx.contiguous();
  if (gradient.scalar_type() == at::kDouble) {
    add_rows<double, double>(gradient, ids, source.const_data_ptr<double>(), first_row);
  } else if (source.scalar_type() == at::kBFloat16) {
    add_rows<at::BFloat16, float>(gradient, ids, source.const_data_ptr<at::BFloat16>(), first_row);
  } else {
    add_rows<float, float>(gradient, ids, source.const_data_ptr<float>(), first_row);
  }
}

}  // namespace octavo::ops
