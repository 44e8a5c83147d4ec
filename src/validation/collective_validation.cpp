#include "octavo/validation/collective_validation.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/mesh/hardware.h"
#include "octavo/plan/collective_time.h"
#include "validation/golden_case.h"

namespace octavo {
namespace {

using nlohmann::json;

CollectiveTimes times_of(const Accelerator& accelerator, int num_ranks, int num_nodes) {
  const int fabric = static_cast<int>(accelerator.fabric.ranks.value);
  const int in_node = std::max(num_ranks / num_nodes, std::min(fabric, 8));
  const Cluster cluster{accelerator, in_node, num_nodes};
  return {cluster.links(DeviceMesh({{Axis::Tensor, num_ranks}}), std::array{Axis::Tensor}), accelerator.timing};
}

Collective kind_named(const std::string& name) {
  for (const Collective kind : kAllCollectives) {
    if (name == collective_name(kind)) return kind;
  }
  throw UsageError(cat("collective ", in_quotes(name), " is not known"));
}

void predict_collective(const json& input, ValidationRow& row) {
  const int nodes = input.at("nodes").get<int>(), ranks = input.at("ranks").get<int>();
  if (nodes < 1 || ranks < nodes) throw UsageError("ranks and nodes are not counts of one group");
  const Accelerator& accelerator = find_accelerator(input.at("accelerator").get<std::string>());
  const CollectiveTime time = times_of(accelerator, ranks, nodes)
                                  .fastest(kind_named(input.at("collective").get<std::string>()),
                                           std::max<Bytes>(0, input.at("bytes").get<Bytes>()));
  row.predicted = time.seconds * 1e6;
  row.why = cat(algorithm_name(time.algorithm), " over ", ranks, " ranks");
}

void predict_copy(const json& input, ValidationRow& row) {
  constexpr Bytes kLarge = Bytes{1} << 34;
  const Accelerator& accelerator = find_accelerator(input.at("accelerator").get<std::string>());
  const Seconds seconds = times_of(accelerator, 2, 1).fastest(Collective::Send, kLarge).seconds;
  row.predicted = static_cast<double>(kLarge) / seconds / 1e9;
  row.why = "one way, 16 GiB";
}

}  // namespace

std::vector<ValidationRow> validate_collectives(const json& file) {
  std::vector<ValidationRow> rows;
  for (const json& item : cases_of(file)) {
    if (!item.is_object() || item.value("kind", "") != "measurement") continue;
    ValidationRow row;
    row.id = item.value("id", "");
    row.tolerance = item.value("tolerance_rel", 0.0);
    const json expect = item.value("expect", json::object()), input = item.value("input", json::object());
    row.quantity = expect.contains("time_us") ? "time_us" : "gb_per_s";
    if (expect.contains(row.quantity) && expect[row.quantity].is_number()) row.published = expect[row.quantity];
    try {
      if (row.published <= 0) throw UsageError("no published time or rate");
      row.quantity == "time_us" ? predict_collective(input, row) : predict_copy(input, row);
    } catch (const UsageError& error) {
      row.why = error.what();
    } catch (const json::exception&) {
      row.why = "configuration incomplete: it needs accelerator, collective, ranks, nodes and bytes";
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace octavo
