// What `octavo audit` says of a model and a layout, before it is printed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "octavo/layout/element_type.h"
#include "octavo/plan/audit_dimensions.h"
#include "octavo/plan/audit_pipeline.h"
#include "octavo/plan/audit_policies.h"
#include "octavo/plan/audit_slices.h"
#include "octavo/plan/pipeline_schedule.h"

namespace octavo::cli {

struct AuditOptions {
  Layout layout;
  std::vector<std::int64_t> degrees;  // ascending
  std::int64_t sequence_length = 0;
  ElementType compute = ElementType::BFloat16;
  int micro_batches = 1;
  std::optional<int> rank;
};

/// A dimension, the asked degrees that divide it, and what the layout's own degree leaves.
struct DimensionRow {
  AuditDimension dimension;
  Factorisation factors;
  std::vector<std::int64_t> fitting;
  std::int64_t degree;                // the layout's, of the axis that cuts it; 1 where none does
  std::optional<std::int64_t> slice;  // size / degree, where that is whole
};

/// A pipeline degree: its stages when layers are cut evenly, when super-blocks are, and at best.
struct PipelineRow {
  int degree;
  std::vector<StageComposition> stages;  // cut evenly by layers
  bool identical;
  StageBalance body, with_head;
  std::optional<StageBalance> super_blocks;  // with the head; absent: fewer super-blocks than stages
  std::optional<StageBalance> optimal;       // with the head; absent where the search would take long
  struct Idle {
    PipelineKind kind;
    PipelineBubble equal;     // of equal stages
    double unequal_of_total;  // of the step, with the stages of the even cut and the head
  };
  std::vector<Idle> bubbles;
};

struct RankReport {
  struct Group {
    std::string axis;
    int index;
    std::vector<int> ranks;
  };
  struct Slice {
    std::string parameter;
    std::vector<std::int64_t> shape;
    ParameterSlice slice;
  };
  struct Heads {
    BlockKind kind;
    HeadRange range;
  };
  int rank;
  std::vector<Group> groups;
  Interval layers;
  std::vector<Heads> heads;
  std::vector<Slice> slices;  // of the first layer of each kind in its stage, and of the vocabulary
  std::int64_t elements;
  StateBytes state;
  Bytes cache_per_token, recurrent_per_sequence;
};

struct AuditReport {
  AuditOptions options;
  std::int64_t num_parameters, num_active, num_mtp;
  std::vector<DimensionRow> dimensions;
  FittingDegrees tensor_degrees;            // among the asked
  TensorFit fit;                            // of the layout's tensor degree
  std::optional<std::int64_t> next_degree;  // the next power of two behind the largest that fits exactly
  std::vector<std::string> next_failing;    // what stops it
  std::vector<std::int64_t> ulysses_degrees;
  std::vector<MisfitPolicy> policies;        // of the tensor degree, where it does not fit
  std::optional<GatherPrice> gather;         // where KV heads do not divide
  std::optional<FoldInstead> fold;           // where it does not fit
  std::optional<std::int64_t> lower_degree;  // the largest that fits exactly below the layout's, where that does not
  std::int64_t lower_elements = 0;           // that a rank then stores
  std::vector<PipelineRow> pipeline;
  std::optional<RankReport> rank;
  std::string no_rank;                // why there is none, where the layout refuses the model
  std::vector<std::string> problems;  // every copy, padding and imbalance of the layout: what --strict fails for
};

/// Throws UsageError for sizes that cannot be counted.
AuditReport make_audit_report(const ModelSpec& model, const AuditOptions& options);

std::string audit_text(const ModelSpec& model, const AuditReport& report);
nlohmann::json audit_json(const ModelSpec& model, const AuditReport& report);

}  // namespace octavo::cli
