#include "octavo/ops/rope.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <numbers>

#include "ops/kernels/rope.h"
#include "ops/rows_of.h"

namespace octavo::ops {
namespace {

/// Slows long waves by the factor, keeps short ones, blends between; in S, in transformers' order of operations.
template <class S>
void scale_frequencies(const RopeSpec::Llama3& llama3, S* frequencies, std::int64_t count) {
  const S original = static_cast<S>(llama3.original_max_positions), factor = static_cast<S>(llama3.factor);
  const S low = static_cast<S>(llama3.low_freq_factor), high = static_cast<S>(llama3.high_freq_factor);
  for (std::int64_t j = 0; j < count; ++j) {
    const S wavelength = static_cast<S>(2 * std::numbers::pi) / frequencies[j];
    const S slowed = frequencies[j] / factor;
    if (wavelength > original / low) {
      frequencies[j] = slowed;
    } else if (wavelength >= original / high) {
      const S kept_part = (original / wavelength - low) / (high - low);
      frequencies[j] = (S(1) - kept_part) * slowed + kept_part * frequencies[j];
    }
  }
}

/// [D/2], on `options`' device.
at::Tensor inverse_frequencies(const RopeSpec& spec, std::int64_t head_dim, const at::TensorOptions& options) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, options.dtype(at::kLong)).to(options.dtype()).div_(static_cast<double>(head_dim));
  const at::Tensor frequencies = at::pow(at::Scalar(spec.theta), exponents).reciprocal_();
  if (!spec.llama3 || frequencies.is_meta()) return frequencies;
  with_element_type(frequencies.scalar_type(), "rope_table", [&](auto element) {
    using S = kernels::ComputeType<decltype(element)>;
    scale_frequencies<S>(*spec.llama3, mutable_data_of<S>(frequencies), frequencies.numel());
  });
  return frequencies;
}

void check_rope(const at::Tensor& x, const RopeTable& table, const char* where) {
  check_shape(x.dim() == 3 || x.dim() == 4, where, "x", x, "it must be [T, N, D] or [T, N1, N2, D]");
  check_shape(x.size(-1) % 2 == 0, where, "x", x, "D must be even");
  for (const at::Tensor& part : {table.cos, table.sin}) {
    check_shape(part.dim() == 2 && part.size(0) == x.size(0) && 2 * part.size(1) == x.size(-1) &&
                    part.is_contiguous() && part.scalar_type() == statistics_dtype(x.scalar_type()),
                where, "the table", part, cat("x has ", x.size(0), " tokens of width ", x.size(-1)).c_str());
  }
}

/// [T, N, D] of a tensor that may hold its heads as [T, N1, N2, D].
std::vector<std::int64_t> flat_heads(const at::Tensor& x) {
  return {x.size(0), x.dim() == 3 ? x.size(1) : x.size(1) * x.size(2), x.size(-1)};
}

}  // namespace

RopeTable rope_table(const RopeSpec& spec, std::int64_t head_dim, const at::Tensor& positions, at::ScalarType dtype) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_shape(positions.dim() == 1 && positions.scalar_type() == at::kLong, "rope_table", "positions", positions,
              "they must be int64 [T]");
  const at::TensorOptions options = positions.options().dtype(statistics_dtype(dtype));
  const at::Tensor angles =
      positions.to(options.dtype()).unsqueeze(1) * inverse_frequencies(spec, head_dim, options).unsqueeze(0);
  return {at::cos(angles), at::sin(angles)};
}

void rope_into(const at::Tensor& y, const at::Tensor& x, const RopeTable& table, bool inverse) {
  check_rope(x, table, "rope");
  check_rope(y, table, "rope");
  check_shape(flat_heads(x) == flat_heads(y) && x.scalar_type() == y.scalar_type(), "rope", "y", y,
              "it must have x's heads and dtype");
  const kernels::Rows x_heads = rows_of(x, 1, "rope");
  const kernels::Rows y_heads = rows_of(y, 1, "rope");
  if (x.is_meta()) return;
  const std::int64_t num_tokens = x.size(0), width = x.size(-1);
  with_element_type(x.scalar_type(), "rope", [&](auto element) {
    using T = decltype(element);
    using S = kernels::ComputeType<T>;
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      const std::int64_t angle = token * (width / 2);
      kernels::rotate_heads<T>(data_of<T>(x) + token * x.stride(0), x_heads, data_of<S>(table.cos) + angle,
                               data_of<S>(table.sin) + angle, inverse ? S(-1) : S(1), width,
                               mutable_data_of<T>(y) + token * y.stride(0), y_heads);
    }
  });
}

at::Tensor rope(const at::Tensor& x, const RopeTable& table, bool inverse) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_rope(x, table, "rope");
  const at::Tensor y = at::empty(flat_heads(x), x.options().memory_format(at::MemoryFormat::Contiguous));
  rope_into(y, x, table, inverse);
  return y;
}

at::Tensor rope_naive(const at::Tensor& x, const RopeTable& table, bool inverse) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_rope(x, table, "rope_naive");
  const at::Tensor heads = x.reshape(flat_heads(x)).to(table.cos.scalar_type());
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor first = heads.narrow(-1, 0, half), second = heads.narrow(-1, half, half);
  const at::Tensor c = table.cos.unsqueeze(1);
  const at::Tensor s = inverse ? -table.sin.unsqueeze(1) : table.sin.unsqueeze(1);
  return at::cat({first * c - second * s, second * c + first * s}, -1).to(x.scalar_type());
}

}  // namespace octavo::ops
