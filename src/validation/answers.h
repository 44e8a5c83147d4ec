// octavo's own figures for a case of a golden file, by subject. An answer is an object with the keys of the case's
// "expect", of those that it knows; null if the case is of another subject.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

namespace octavo {

/// Throws UsageError, json::exception or a std::logic_error for a case whose input does not say enough.
using Answer = std::function<nlohmann::json(const nlohmann::json& item)>;

/// In place of a figure that is a source's own, or a remark: known, but nothing of ours to compare.
inline nlohmann::json not_ours() {
  return nlohmann::json::binary({});
}

// Each for the cases of `file`, which must outlive it.
Answer audit_answer(const nlohmann::json& file);       // divisors, slices, prices of misfits, stages
Answer activation_answer(const nlohmann::json& file);  // published formulas of activation memory
Answer pipeline_answer();                              // bubbles, activations in flight
Answer hardware_answer();                              // the catalogue, bus factors, full meshes
Answer flops_answer(const nlohmann::json& file);       // per token, of "models"
Answer strategy_answer(const nlohmann::json& file);    // one layer under each strategy, folding against the others

}  // namespace octavo
