#include "octavo/parallel/tensor/tensor_exchange.h"

#include <ATen/ATen.h>

namespace octavo {
namespace {

/// What both forms share: the vocabulary's merge and plain sums.
class TensorExchange : public UnitExchange {
 public:
  explicit TensorExchange(Communicator& tensor) : tensor_(tensor) {}

  void merge(ops::VocabularyMerge& state, bool counts) final {
    const std::int64_t num_tokens = state.lse.size(0), num_ranks = tensor_.size();
    const at::Tensor states = at::empty({num_ranks, 2, num_tokens}, state.lse.options());
    const at::Tensor own = states.select(0, tensor_.index());
    if (counts) {
      own.select(0, 0).copy_(state.lse);
      own.select(0, 1).copy_(state.picked);
    } else {
      const ops::VocabularyMerge nothing =
          ops::vocabulary_merge_begin(num_tokens, state.lse.scalar_type(), state.lse.device());
      own.select(0, 0).copy_(nothing.lse);
      own.select(0, 1).copy_(nothing.picked);
    }
    tensor_.all_gather(states, own, Purpose::Loss).wait();
    ops::vocabulary_merge_states(state, states);
  }

  at::Tensor total(at::Tensor x) final {
    tensor_.all_reduce(x, Purpose::Activations).wait();
    return x;
  }

 protected:
  Communicator& tensor_;
};

class AllReduceExchange final : public TensorExchange {
 public:
  using TensorExchange::TensorExchange;

  at::Tensor gather(const at::Tensor& x) override { return x; }
  at::Tensor sum(at::Tensor partial, bool counts) override {
    if (!counts) partial.zero_();
    return total(std::move(partial));
  }
};

class ScatterExchange final : public TensorExchange {
 public:
  ScatterExchange(Communicator& tensor, std::int64_t num_tokens)
      : TensorExchange(tensor), num_tokens_(num_tokens), num_held_((num_tokens + tensor.size() - 1) / tensor.size()) {}

  at::Tensor gather(const at::Tensor& x) override {
    const at::Tensor all = at::empty({num_held_ * tensor_.size(), x.size(1)}, x.options());
    tensor_.all_gather(all, x, Purpose::Activations).wait();
    return all.narrow(0, 0, num_tokens_);
  }

  at::Tensor sum(at::Tensor partial, bool counts) override {
    if (!counts) partial.zero_();
    const std::int64_t padding = num_held_ * tensor_.size() - num_tokens_;
    if (padding > 0) partial = at::cat({partial, at::zeros({padding, partial.size(1)}, partial.options())});
    at::Tensor own = at::empty({num_held_, partial.size(1)}, partial.options());
    tensor_.reduce_scatter(own, partial, Purpose::Activations).wait();
    return own;
  }

 private:
  std::int64_t num_tokens_, num_held_;
};

}  // namespace

std::unique_ptr<UnitExchange> make_tensor_exchange(Communicator& tensor, TensorForm form, std::int64_t num_tokens) {
  if (form == TensorForm::Scatter) return std::make_unique<ScatterExchange>(tensor, num_tokens);
  return std::make_unique<AllReduceExchange>(tensor);
}

}  // namespace octavo
