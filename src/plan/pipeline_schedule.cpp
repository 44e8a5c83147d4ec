#include "octavo/plan/pipeline_schedule.h"

#include <algorithm>
#include <array>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::array kAllKinds = {PipelineKind::GPipe,        PipelineKind::OneForwardOneBackward,
                                  PipelineKind::Interleaved,  PipelineKind::ZeroBubbleH1,
                                  PipelineKind::ZeroBubbleH2, PipelineKind::ZeroBubbleV,
                                  PipelineKind::VHalf,        PipelineKind::VMin,
                                  PipelineKind::DualPipe,     PipelineKind::DualPipeV};

void check_shape(const PipelineShape& shape) {
  internal_check(shape.num_stages >= 1 && shape.num_micro_batches >= 1 && shape.num_chunks >= 1,
                 "[plan] a pipeline has at least one stage, micro-batch and chunk");
}

bool is_v_form(PipelineKind kind) {
  return kind == PipelineKind::ZeroBubbleV || kind == PipelineKind::VHalf || kind == PipelineKind::VMin;
}

bool is_dual(PipelineKind kind) {
  return kind == PipelineKind::DualPipe || kind == PipelineKind::DualPipeV;
}

/// The bubble that a share `rate` of the total is.
double bubble_of_rate(double rate, double ideal) {
  return ideal * rate / (1 - rate);
}

/// Formula of the header for 1f1b; what is not the pace of stage j itself is divided by `chunks`.
double one_by_one_makespan(int num_micro_batches, std::span<const StageTimes> stages, int chunks) {
  double before = 0;
  double behind = 0;
  for (const StageTimes& stage : stages) behind += stage.sum();
  double longest = 0;
  for (std::size_t j = 0; j < stages.size(); ++j) {
    const StageTimes& stage = stages[j];
    behind -= stage.sum();
    const auto followers = static_cast<double>(stages.size() - 1 - j);
    double waiting = behind;  // with one micro-batch nothing fills the time
    if (num_micro_batches > 1) {
      waiting = std::max(0.0, behind - followers * stage.forward) +
                std::max(0.0, behind - followers * (stage.sum() - stage.forward));
    }
    longest = std::max(longest, num_micro_batches * stage.sum() + (before + waiting) / chunks);
    before += stage.sum();
  }
  return longest;
}

}  // namespace

std::string_view pipeline_kind_name(PipelineKind kind) {
  switch (kind) {
    case PipelineKind::GPipe:
      return "gpipe";
    case PipelineKind::OneForwardOneBackward:
      return "1f1b";
    case PipelineKind::Interleaved:
      return "interleaved";
    case PipelineKind::ZeroBubbleH1:
      return "zb-h1";
    case PipelineKind::ZeroBubbleH2:
      return "zb-h2";
    case PipelineKind::ZeroBubbleV:
      return "zb-v";
    case PipelineKind::VHalf:
      return "v-half";
    case PipelineKind::VMin:
      return "v-min";
    case PipelineKind::DualPipe:
      return "dualpipe";
    case PipelineKind::DualPipeV:
      return "dualpipev";
  }
  throw InternalError("[plan] a PipelineKind outside its enumeration has no name");
}

PipelineKind pipeline_kind_from_name(std::string_view name) {
  std::vector<std::string> names;
  for (const PipelineKind kind : kAllKinds) {
    if (pipeline_kind_name(kind) == name) return kind;
    names.emplace_back(pipeline_kind_name(kind));
  }
  const std::string close = nearest(name, names);
  throw UsageError(cat("[plan] ", in_quotes(name, 40), " is no pipeline schedule; ",
                       close.empty() ? cat("it is one of ", join(names, ", ")) : cat("did you mean ", close, "?")));
}

std::optional<std::string> shape_problem(const PipelineShape& shape) {
  check_shape(shape);
  const std::string_view name = pipeline_kind_name(shape.kind);
  const int p = shape.num_stages, m = shape.num_micro_batches, v = shape.num_chunks;
  if (shape.kind == PipelineKind::Interleaved) {
    if (v < 2) return cat(name, " needs 2 chunks per device or more, not ", v);
    if (m % p != 0) return cat(name, " needs micro-batches in multiples of its ", p, " stages, not ", m);
  } else if (is_v_form(shape.kind)) {
    if (v != 2) return cat(name, " has 2 chunks per device, not ", v);
  } else if (v != 1) {
    return cat(name, " has 1 chunk per device, not ", v);
  }
  if (shape.kind == PipelineKind::ZeroBubbleH2 && m < 2 * p - 1) {
    return cat(name, " needs ", 2 * p - 1, " micro-batches for its ", p, " stages, not ", m);
  }
  if (is_dual(shape.kind)) {
    if (p % 2 != 0) return cat(name, " needs an even number of stages, not ", p);
    const int least = shape.kind == PipelineKind::DualPipe ? 2 * p : p;
    if (m < least) return cat(name, " needs ", least, " micro-batches for its ", p, " stages, not ", m);
    if (shape.kind == PipelineKind::DualPipe && m % 2 != 0) {
      return cat(name, " needs an even number of micro-batches, not ", m);
    }
  }
  return std::nullopt;
}

PipelineBubble pipeline_bubble(const PipelineShape& shape, const StageTimes& times) {
  check_shape(shape);
  const double p = shape.num_stages, m = shape.num_micro_batches;
  const double forward = times.forward, input = times.backward_input, weight = times.backward_weight;
  const double ideal = m * times.sum();
  const double rate = (p - 1) / (m + p - 1);
  double time = 0;
  bool is_exact = true;
  switch (shape.kind) {
    case PipelineKind::GPipe:
    case PipelineKind::OneForwardOneBackward:
      time = (p - 1) * times.sum();
      break;
    case PipelineKind::Interleaved:
      time = (p - 1) * times.sum() / shape.num_chunks;
      is_exact = !shape_problem(shape);
      break;
    case PipelineKind::ZeroBubbleH1:
      time = (p - 1) * (forward + input - weight);
      break;
    case PipelineKind::ZeroBubbleH2:
      time = (p - 1) * (forward + input - 2 * weight);
      is_exact = !shape_problem(shape);
      break;
    case PipelineKind::ZeroBubbleV:
      is_exact = false;
      break;
    case PipelineKind::VHalf:
      time = bubble_of_rate(rate / 2, ideal);
      is_exact = false;
      break;
    case PipelineKind::VMin:
      time = bubble_of_rate(2 * rate / 3, ideal);
      is_exact = false;
      break;
    case PipelineKind::DualPipe:
    case PipelineKind::DualPipeV:
      time = (p / 2 - 1) * (times.overlapped.value_or(times.sum()) + input + weight - 3 * weight);
      is_exact = !shape_problem(shape);
      break;
  }
  time = std::max(time, 0.0);
  return {.time = time,
          .over_ideal = time / ideal,
          .of_total = time / (ideal + time),
          .makespan = ideal + time,
          .is_exact = is_exact};
}

double pipeline_makespan(const PipelineShape& shape, std::span<const StageTimes> stages) {
  check_shape(shape);
  internal_check(static_cast<int>(stages.size()) == shape.num_stages, "[plan] a pipeline's times are one per stage");
  if (shape.kind == PipelineKind::OneForwardOneBackward || shape.kind == PipelineKind::Interleaved) {
    return one_by_one_makespan(shape.num_micro_batches, stages, shape.num_chunks);
  }
  StageTimes mean = {0, 0, 0};
  double slowest = 0, forward = 0, backward = 0;
  const auto count = static_cast<double>(stages.size());
  for (const StageTimes& stage : stages) {
    mean.forward += stage.forward / count;
    mean.backward_input += stage.backward_input / count;
    mean.backward_weight += stage.backward_weight / count;
    slowest = std::max(slowest, stage.sum());
    forward = std::max(forward, stage.forward);
    backward = std::max(backward, stage.sum() - stage.forward);
  }
  if (shape.kind == PipelineKind::GPipe) {
    return count * mean.sum() + (shape.num_micro_batches - 1) * (forward + backward);
  }
  return shape.num_micro_batches * slowest + pipeline_bubble(shape, mean).time;
}

std::vector<InFlight> peak_in_flight(const PipelineShape& shape) {
  check_shape(shape);
  const double p = shape.num_stages, m = shape.num_micro_batches, v = shape.num_chunks;
  std::vector<InFlight> peaks(static_cast<std::size_t>(num_devices(shape)));
  for (std::size_t device = 0; device < peaks.size(); ++device) {
    const auto i = static_cast<double>(device);
    switch (shape.kind) {
      case PipelineKind::GPipe:
        peaks[device] = {m};
        break;
      case PipelineKind::OneForwardOneBackward:
        peaks[device] = {std::min(p - i, m)};
        break;
      case PipelineKind::Interleaved:
        peaks[device] = {std::min(2 * (p - 1 - i) + (v - 1) * p + 1, m * v)};
        break;
      case PipelineKind::ZeroBubbleH1:
        peaks[device] = {p - i, i};
        break;
      case PipelineKind::ZeroBubbleH2:
        peaks[device] = {2 * p - 1 - 2 * i, 2 * i};
        break;
      case PipelineKind::ZeroBubbleV:
        peaks[device] = {2 * p};
        break;
      case PipelineKind::VHalf:
        peaks[device] = {p};
        break;
      case PipelineKind::VMin:
        peaks[device] = {2 * p / 3};
        break;
      case PipelineKind::DualPipe:
      case PipelineKind::DualPipeV:
        peaks[device] = {p + 1};
        break;
    }
  }
  return peaks;
}

int num_devices(const PipelineShape& shape) {
  return shape.kind == PipelineKind::DualPipeV ? std::max(1, shape.num_stages / 2) : shape.num_stages;
}

int parameter_copies(const PipelineShape& shape) {
  return is_dual(shape.kind) ? 2 : 1;
}

int border_factor(const PipelineShape& shape) {
  return shape.kind == PipelineKind::Interleaved || is_v_form(shape.kind) ? shape.num_chunks : 1;
}

}  // namespace octavo
