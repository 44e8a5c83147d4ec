// What a block keeps from forward for its backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

/// keep: everything that the backward reads. recompute: the block's input alone. named: the input and the values of
/// these names, which the recompute then does not compute again.
struct StashPolicy {
  enum class Kind { Keep, Recompute, Named };
  Kind kind = Kind::Keep;
  std::vector<std::string> names;

  bool keeps(const std::string& name) const;
  std::string to_string() const;
};

/// Names that blocks offer: "attention" (output and log-sum-exp), "qkv", "gate_up".
/// "keep", "recompute" or names separated by commas. Throws UsageError for an unknown name.
StashPolicy parse_stash_policy(const std::string& text);

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
