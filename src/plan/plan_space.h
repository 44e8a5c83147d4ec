// The space of plan/search.h: degrees, and the options of each axis under them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "octavo/plan/audit_dimensions.h"
#include "octavo/plan/search.h"

namespace octavo {

struct Degrees {
  int pipeline = 1, data = 1, expert = 1, sequence = 1, fold = 1, tensor = 1;

  int& of(Axis axis) { return this->*member(axis); }
  int of(Axis axis) const { return this->*member(axis); }
  /// Ranks that hold the same weights.
  int copies() const { return data * sequence * expert; }
  /// Ranks of one replica, expert ranks included.
  int replica() const { return pipeline * expert * sequence * fold * tensor; }

  static int Degrees::*member(Axis axis);
};
Degrees degrees_of(const DeviceMesh& mesh);

/// Axes in the order of Axis, `innermost` last; those of degree 1 are left out.
DeviceMesh mesh_of(const Degrees& degrees, Axis innermost = Axis::Tensor);

/// A rule that is broken, and by what.
struct Broken {
  Rule rule;
  std::string text;
};

// One entry of an axis' options, and what it breaks, if anything.
struct PipelineOption {
  PipelineForm form;
  int virtual_stages;
};
struct TensorOption {
  TensorForm form;
  Misfit misfit;
  std::optional<Broken> broken;
};
struct SequenceOption {
  SequenceForm form;
  std::optional<Broken> broken;
};

class PlanSpace {
 public:
  /// Keeps references to both.
  PlanSpace(const PlanRequest& request, const SearchSpace& space);

  /// All that multiply to the cluster's accelerators and that the space allows; pipeline varies slowest, tensor
  /// fastest.
  std::vector<Degrees> degrees() const;
  /// What breaks under these degrees whatever the options.
  std::optional<Broken> broken(const Degrees& degrees) const;

  /// The first rule that a plan breaks by itself, memory apart: also a micro-batch above a rank's share of the batch.
  std::optional<Broken> broken(const StepPlan& plan) const;

  std::vector<ZeroStage> zero(const Degrees& degrees) const;  // zero0 last
  std::vector<PipelineOption> pipeline(const Degrees& degrees) const;
  std::vector<TensorOption> tensor(const Degrees& degrees) const;
  std::vector<SequenceOption> sequence(const Degrees& degrees) const;
  std::vector<FoldForm> fold(const Degrees& degrees) const;
  std::vector<std::int64_t> micro_batches(const Degrees& degrees) const;  // ascending
  std::vector<StashPolicy> stashes() const;  // each computes more again than the one before
  std::vector<DeviceMesh> orders(const Degrees& degrees) const;

  std::optional<Broken> broken(const Degrees& degrees, const PipelineOption& option, std::int64_t micro_batch) const;

 private:
  const TensorFit& tensor_fit_of(int degree) const;
  const TensorFit& ulysses_fit_of(int degree) const;

  const PlanRequest& request_;
  const SearchSpace& space_;
  int num_layers_;
  std::int64_t num_experts_ = 0;
  mutable std::map<int, TensorFit> tensor_fits_, ulysses_fits_;  // by degree, as they are asked for
};

}  // namespace octavo
