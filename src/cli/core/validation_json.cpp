#include <nlohmann/json.hpp>

#include "cli/core/validation.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

json row_json(const ValidationRow& row) {
  json out{{"id", row.id},          {"group", row.group},       {"source", row.source},
           {"used", row.is_used()}, {"quantity", row.quantity}, {"published", row.published},
           {"why", row.why}};
  if (!row.is_used()) return out;
  out["predicted"] = *row.predicted;
  out["error_rel"] = row.error();
  out["tolerance_rel"] = row.tolerance;
  return out;
}

json time_json(const TimeValidation& time) {
  json out;
  for (const SourceError& source : time.sources) {
    out["sources"].push_back({{"source", source.source},
                              {"rows", source.rows},
                              {"mean_error_rel", source.mean},
                              {"most_error_rel", source.most},
                              {"baseline_mean_error_rel", source.baseline_mean},
                              {"baseline_most_error_rel", source.baseline_most},
                              {"limit_rel", source.limit ? json(*source.limit) : json()}});
  }
  for (const RulesError& rules : time.rules) {
    json axes = json::array();
    for (const Axis axis : rules.axes) axes.push_back(axis_name(axis));
    out["constants"].push_back({{"software", rules.software},
                                {"accelerator", rules.accelerator},
                                {"rows", rules.rows},
                                {"configurations", rules.configurations},
                                {"mean_error_rel", rules.mean},
                                {"most_error_rel", rules.most},
                                {"axes", axes}});
  }
  for (const PairOrder& order : time.groups) {
    out["groups"].push_back(
        {{"group", order.group}, {"pairs", order.pairs}, {"in_order", order.right}, {"not_in_order", order.wrong}});
  }
  for (const RankingResult& ranking : time.rankings) {
    out["rankings"].push_back({{"id", ranking.id},
                               {"used", ranking.is_used()},
                               {"why", ranking.why},
                               {"best_is_right", ranking.best_is_right},
                               {"kendall_tau", ranking.tau},
                               {"predicted_best_first", ranking.predicted}});
  }
  for (const NoiseFloor& noise : time.noise) {
    out["noise"].push_back({{"source", noise.source}, {"rows", noise.rows}, {"mean_error_rel", noise.mean}});
  }
  return out;
}

}  // namespace

json validation_json(std::span<const FileReport> reports) {
  json files = json::array();
  for (const FileReport& report : reports) {
    json file{{"file", report.name},
              {"title", report.title},
              {"why_not_compared", report.why},
              {"note", report.note},
              {"beyond_limit", report.failures}};
    file["identities"] = {{"cases", report.identities.cases},
                          {"figures", report.identities.figures},
                          {"wrong", report.identities.wrong},
                          {"not_compared", report.identities.left_out}};
    file["rows"] = json::array();
    const std::vector<ValidationRow>& rows = report.time ? report.time->rows : report.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      json row = row_json(rows[i]);
      if (report.time && rows[i].is_used()) row["baseline_error_rel"] = report.time->baseline[i];
      file["rows"].push_back(std::move(row));
    }
    if (report.time) file["time"] = time_json(*report.time);
    files.push_back(std::move(file));
  }
  return {{"files", files}};
}

}  // namespace octavo::cli
