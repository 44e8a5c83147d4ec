#include "parallel/fold/gradient_returns.h"

#include <ATen/ATen.h>

#include "octavo/ops/accumulate.h"

namespace octavo {

void GradientReturns::begin_step() {
  ++num_steps_;
  finish(num_steps_ - 2);
}

void GradientReturns::send(const at::Tensor& sum, std::vector<OwnedRows> parts) {
  Returning& back = returning_.emplace_back(Returning{num_steps_, ++num_messages_, sum, {}, {}});
  for (OwnedRows& part : parts) {
    const at::Tensor rows = sum.narrow(0, part.rows.begin, part.rows.size());
    back.pending.push_back(fold_.reduce(rows, part.owner, Purpose::Gradients));
    if (part.owner == fold_.index() && !part.target.is_alias_of(sum)) back.own.push_back(std::move(part));
  }
  if (!overlap_) finish(num_steps_);
}

std::int64_t GradientReturns::pass_on(Communicator& ring, const at::Tensor& sum, int to) {
  Returning& back = returning_.emplace_back(Returning{num_steps_, ++num_messages_, sum, {}, {}});
  back.pending.push_back(ring.lend(sum, to, Purpose::Gradients));
  return num_messages_;
}

void GradientReturns::finish_message(std::int64_t message) {
  while (!returning_.empty() && returning_.front().message <= message) {
    arrive(returning_.front());
    returning_.pop_front();
  }
}

void GradientReturns::finish(std::int64_t num_steps) {
  while (!returning_.empty() && returning_.front().step <= num_steps) {
    arrive(returning_.front());
    returning_.pop_front();
  }
}

void GradientReturns::arrive(Returning& back) {
  for (Pending& pending : back.pending) pending.wait();
  for (const OwnedRows& part : back.own) {
    ops::accumulate_(part.target, back.sum.narrow(0, part.rows.begin, part.rows.size()));
  }
}

}  // namespace octavo
