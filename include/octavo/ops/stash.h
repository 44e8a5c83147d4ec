// The values that a block keeps from forward for its backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "octavo/layout/stash_policy.h"

namespace octavo {

/// The named values of one block and step. Forward fills it, the recompute reads it.
class Stash {
 public:
  Stash() = default;                                              // keeps nothing
  explicit Stash(const StashPolicy* policy) : policy_(policy) {}  // policy must outlive this

  /// Keeps `values` if the policy names them and this is a forward without graph.
  void offer(const std::string& name, std::initializer_list<at::Tensor> values);
  /// What forward kept under `name`; empty if nothing was.
  std::vector<at::Tensor> kept(const std::string& name) const;
  /// From now on this stash serves a recompute: it hands out and takes nothing in.
  void begin_recompute() {
    policy_ = nullptr;
    recomputing_ = true;
  }
  /// The values that only the recompute of a partial would need, such as its output, may be left uncomputed.
  bool recomputing() const { return recomputing_; }

 private:
  const StashPolicy* policy_ = nullptr;
  bool recomputing_ = false;
  std::map<std::string, std::vector<at::Tensor>> values_;
};

}  // namespace octavo
