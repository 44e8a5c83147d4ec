#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <limits>

#include "octavo/ops/attention.h"
#include "ops/attention_checks.h"

namespace octavo::ops {
namespace {

/// [T, S] bool: does this query see this key?
at::Tensor visibility(const at::Tensor& q, const at::Tensor& k, std::span<const AttentionPiece> pieces) {
  const at::Tensor visible = at::zeros({q.size(0), k.size(0)}, q.options().dtype(at::kBool));
  for (const AttentionPiece& piece : pieces) {
    at::Tensor part = visible.narrow(0, piece.q_begin, piece.q_len).narrow(1, piece.k_begin, piece.k_len);
    const at::Tensor all = at::ones({piece.q_len, piece.k_len}, visible.options());
    part.logical_or_(piece.causal ? at::tril(all, piece.k_len - piece.q_len) : all);
  }
  return visible;
}

/// [N, G, D] -> [A, N, D] in `dtype`: every KV head once for each of its query heads (once when num_heads is G).
at::Tensor heads_first(const at::Tensor& x, std::int64_t num_heads, at::ScalarType dtype) {
  return x.to(dtype).transpose(0, 1).repeat_interleave(num_heads / x.size(1), 0).contiguous();
}

/// [A, T, S]: what each query gives to each key; all zero for a query that sees none.
at::Tensor probabilities(const at::Tensor& scores, const at::Tensor& lse) {
  const at::Tensor reference = lse.masked_fill(lse == -std::numeric_limits<double>::infinity(), 0.0);
  return at::exp(scores - reference.unsqueeze(-1));
}

at::Tensor masked_scores(const at::Tensor& q_ATD, const at::Tensor& k_ASD, const at::Tensor& visible, double scale) {
  return (at::bmm(q_ATD, k_ASD.transpose(1, 2)) * scale)
      .masked_fill(at::logical_not(visible), -std::numeric_limits<double>::infinity());
}

}  // namespace

AttentionResult attention_forward_naive(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        std::span<const AttentionPiece> pieces, double scale) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_attention(q, k, v, pieces, scale, "attention_forward_naive");
  const at::ScalarType wide = statistics_dtype(q.scalar_type());
  const std::int64_t num_heads = q.size(1);
  const at::Tensor scores =
      masked_scores(heads_first(q, num_heads, wide), heads_first(k, num_heads, wide), visibility(q, k, pieces), scale);
  const at::Tensor lse = at::logsumexp(scores, -1);
  const at::Tensor out = at::bmm(probabilities(scores, lse), heads_first(v, num_heads, wide));
  return {out.transpose(0, 1).to(q.scalar_type()).contiguous(), lse};
}

AttentionGradient attention_backward_naive(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                                           const at::Tensor& v, const AttentionResult& forward,
                                           std::span<const AttentionPiece> pieces, double scale) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_attention(q, k, v, pieces, scale, "attention_backward_naive");
  check_attention_result(dout, q, forward, "attention_backward_naive");
  const at::ScalarType dtype = q.scalar_type(), wide = statistics_dtype(dtype);
  const std::int64_t num_heads = q.size(1), num_kv_heads = k.size(1);
  const at::Tensor q_ATD = heads_first(q, num_heads, wide), k_ASD = heads_first(k, num_heads, wide);
  const at::Tensor v_ASD = heads_first(v, num_heads, wide), dout_ATD = heads_first(dout, num_heads, wide);
  const at::Tensor p = probabilities(masked_scores(q_ATD, k_ASD, visibility(q, k, pieces), scale), forward.lse);
  const at::Tensor delta = (dout_ATD * heads_first(forward.out, num_heads, wide)).sum(-1, /*keepdim=*/true);
  const at::Tensor dscores = p * (at::bmm(dout_ATD, v_ASD.transpose(1, 2)) - delta) * scale;
  const auto kv_gradient = [&](const at::Tensor& per_query_head) {
    return per_query_head.reshape({num_kv_heads, num_heads / num_kv_heads, k.size(0), k.size(2)})
        .sum(1)
        .transpose(0, 1)
        .to(dtype)
        .contiguous();
  };
  return {at::bmm(dscores, k_ASD).transpose(0, 1).to(dtype).contiguous(),
          kv_gradient(at::bmm(dscores.transpose(1, 2), q_ATD)), kv_gradient(at::bmm(p.transpose(1, 2), dout_ATD))};
}

}  // namespace octavo::ops
