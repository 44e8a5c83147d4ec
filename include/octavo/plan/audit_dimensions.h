// The sizes of a model that a layout cuts, and which degrees divide them: the first half of an audit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octavo/mesh/axis.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// A whole number >= 1 as its prime factors.
struct Factorisation {
  struct Power {
    std::int64_t prime;
    int exponent;
  };
  std::vector<Power> powers;  // ascending primes; none for 1

  /// The largest power of two that divides the number, and what is left.
  std::int64_t power_of_two() const;
  std::int64_t odd_part() const;
  /// "2^10 * 17"; "1".
  std::string to_string() const;
};
/// Throws UsageError unless number >= 1.
Factorisation factorise(std::int64_t number);

/// Divisors of `number` from 1 to `most`, ascending.
std::vector<std::int64_t> divisors_up_to(std::int64_t number, std::int64_t most);
/// Powers of two from 1 to `most` that divide `number`, ascending.
std::vector<std::int64_t> power_of_two_divisors(std::int64_t number, std::int64_t most);

/// `size` filled up to a multiple of `degree`.
struct Padding {
  std::int64_t padded;
  double waste;  // what is added, over `size`
};
Padding padding(std::int64_t size, std::int64_t degree);

/// How a dimension may be cut.
enum class CutBy {
  Tensor,    // in whole pieces over the tensor axis: units, or parts of units
  Pipeline,  // over the pipeline axis: layers or groups of them
  Experts,   // over the expert and the tensor axis together
  Tokens,    // over the sequence and the fold axis together; any degree, by filling up
  Nothing,   // follows from another dimension, or stays whole
};

struct AuditDimension {
  std::string name;  // "kv_heads"
  std::int64_t size;
  CutBy cut_by;
  std::string what;  // for people: "KV heads of softmax attention"
};

/// All dimensions of a model, those that the tensor axis cuts first: vocabulary rows, FFN features, query and KV heads,
/// DeltaNet's key and value heads, experts; then layers, super-blocks, and the rows that follow from these.
std::vector<AuditDimension> audit_dimensions(const ModelSpec& model);

/// Throws UsageError naming the nearest if the model has no dimension of that name.
const AuditDimension& find_dimension(const std::vector<AuditDimension>& dimensions, const std::string& name);

/// How a model fits a degree of the tensor axis.
struct TensorFit {
  enum class Status {
    Exact,
    KvReplication,  // only the KV heads do not divide, and each can be held by a whole number of ranks
    Misfit,
  };
  Status status;
  std::vector<std::string> failing;  // dimensions that the degree does not divide
  std::int64_t kv_replicas;          // ranks that hold each KV head where the degree is a multiple of their number; 1
};
TensorFit tensor_fit(const ModelSpec& model, std::int64_t degree);

/// The same for attention by heads over the sequence axis (Ulysses): query, KV and key heads.
TensorFit ulysses_fit(const ModelSpec& model, std::int64_t degree);

/// Degrees from 1 to `most` that fit exactly, and those that fit with copies of KV heads.
struct FittingDegrees {
  std::vector<std::int64_t> exact, with_kv_replication;
};
FittingDegrees fitting_degrees(const ModelSpec& model, std::int64_t most);

/// Layers after which the kinds of layers repeat; the number of all layers if they do not. A model of one kind: 1.
std::int64_t super_block_size(const ModelSpec& model);

}  // namespace octavo
