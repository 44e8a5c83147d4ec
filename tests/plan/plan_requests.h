// A plan for a config of tests/data on a cluster, by Megatron's constants.
#pragma once

#include <string>

#include "octavo/plan/search.h"

namespace octavo {

/// `tokens` of a batch, `length` of a sequence.
inline PlanRequest request_of(const std::string& config, const std::string& cluster, std::int64_t tokens,
                              std::int64_t length) {
  PlanRequest request{.model = read_model_spec("tests/data/configs/" + config + ".json"),
                      .job = {length, tokens / length, ElementType::BFloat16},
                      .cluster = read_cluster(cluster),
                      .rules = find_time_rules("megatron-core", "H100").rules};
  request.memory_limit = default_memory_limit(request.cluster);
  return request;
}

}  // namespace octavo
