#include "octavo/plan/pipeline_simulation.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

struct Operation {
  bool is_forward;
  int micro_batch;
  int chunk;
};

/// The k-th forward of a device is of this micro-batch and chunk: groups of p micro-batches go through the chunks in
/// turn. The k-th backward takes the chunks from the last one.
Operation nth_operation(const PipelineShape& shape, bool is_forward, int k) {
  const int p = shape.num_stages, v = shape.num_chunks;
  const int chunk = k % (p * v) / p;
  return {
      .is_forward = is_forward, .micro_batch = k / (p * v) * p + k % p, .chunk = is_forward ? chunk : v - 1 - chunk};
}

/// Forwards that a device does before its first backward, without the one right before it.
int num_warm_up(const PipelineShape& shape, int device) {
  const int p = shape.num_stages, total = shape.num_micro_batches * shape.num_chunks;
  if (shape.kind == PipelineKind::GPipe) return total;
  const int behind = p - 1 - device;
  const int wanted = shape.num_chunks == 1 ? behind : 2 * behind + (shape.num_chunks - 1) * p;
  return std::min(wanted, total);
}

std::vector<Operation> operations(const PipelineShape& shape, int device) {
  const int total = shape.num_micro_batches * shape.num_chunks;
  std::vector<Operation> order;
  int forwards = 0;
  while (forwards < num_warm_up(shape, device)) order.push_back(nth_operation(shape, true, forwards++));
  for (int backwards = 0; backwards < total; ++backwards) {
    if (forwards < total) order.push_back(nth_operation(shape, true, forwards++));
    order.push_back(nth_operation(shape, false, backwards));
  }
  return order;
}

/// When each operation ended; negative: not yet.
class Ends {
 public:
  explicit Ends(const PipelineShape& shape)
      : shape_(shape), ends_(std::size_t{2} * shape.num_stages * shape.num_micro_batches * shape.num_chunks, -1.0) {}

  double& at(int device, const Operation& one) {
    const int place = (one.chunk * shape_.num_stages + device) * shape_.num_micro_batches + one.micro_batch;
    return ends_[static_cast<std::size_t>(place) * 2 + one.is_forward];
  }

  /// When what `one` needs is there: the same micro-batch's operation one stage before it in its direction.
  double ready(int device, Operation one) {
    const int last = shape_.num_stages - 1;
    if (one.is_forward) {
      if (device > 0) return at(device - 1, one);
      if (one.chunk == 0) return 0;
      --one.chunk;
      return at(last, one);
    }
    if (device < last) return at(device + 1, one);
    if (one.chunk == shape_.num_chunks - 1) {
      one.is_forward = true;
      return at(device, one);
    }
    ++one.chunk;
    return at(0, one);
  }

 private:
  PipelineShape shape_;
  std::vector<double> ends_;
};

int peak_of(std::span<const Operation> order) {
  int now = 0, peak = 0;
  for (const Operation& one : order) {
    now += one.is_forward ? 1 : -1;
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace

PipelineTimeline simulate_pipeline(const PipelineShape& shape, std::span<const StageTimes> stages) {
  const int p = shape.num_stages;
  if (shape.kind != PipelineKind::GPipe && shape.kind != PipelineKind::OneForwardOneBackward &&
      shape.kind != PipelineKind::Interleaved) {
    throw UsageError(cat("[plan] ", pipeline_kind_name(shape.kind),
                         " is not simulated; gpipe, 1f1b and interleaved are, others have closed forms"));
  }
  if (const auto problem = shape_problem(shape)) throw UsageError(cat("[plan] ", *problem));
  internal_check(static_cast<int>(stages.size()) == p, "[plan] a pipeline's times are one per stage");

  std::vector<std::vector<Operation>> orders;
  PipelineTimeline timeline = {.makespan = 0, .busy = std::vector<double>(stages.size()), .peak_activations = {}};
  for (int device = 0; device < p; ++device) {
    orders.push_back(operations(shape, device));
    timeline.peak_activations.push_back(peak_of(orders.back()));
  }
  Ends ends(shape);
  std::vector<double> now(stages.size(), 0.0);
  std::vector<std::size_t> next(stages.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int device = 0; device < p; ++device) {
      const StageTimes& times = stages[device];
      for (; next[device] < orders[device].size(); ++next[device]) {
        const Operation& one = orders[device][next[device]];
        const double ready = ends.ready(device, one);
        if (ready < 0) break;
        const double length = (one.is_forward ? times.forward : times.sum() - times.forward) / shape.num_chunks;
        now[device] = std::max(now[device], ready) + length;
        timeline.busy[device] += length;
        ends.at(device, one) = now[device];
        moved = true;
      }
    }
  }
  for (int device = 0; device < p; ++device) {
    internal_check(next[device] == orders[device].size(), "[plan] a pipeline schedule waits for itself");
    timeline.makespan = std::max(timeline.makespan, now[device]);
  }
  return timeline;
}

}  // namespace octavo
