// octavo layout: who holds what.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/core/table.h"
#include "cli/fold_report.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/placement.h"
#include "octavo/spec/parameters.h"
#include "octavo/train/model_source.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

struct LayoutArguments {
  ModelOption model;
  std::string layout, dtype = "fp32";
  std::optional<int> rank;  // absent: every rank, shortened
  bool intervals = false, json_output = false;
};

struct RankView {
  int rank;
  Placement placement;
  StateBytes bytes;
};

std::string coordinates(const DeviceMesh& mesh, int rank) {
  std::vector<std::string> parts;
  for (const AxisSize& axis : mesh.axes()) parts.push_back(cat(axis_name(axis.axis), " ", mesh.index(rank, axis.axis)));
  return parts.empty() ? "-" : join(parts, ", ");
}

std::string to_text(const std::vector<Interval>& intervals) {
  std::vector<std::string> parts;
  for (const Interval& interval : intervals) parts.push_back(cat("[", interval.begin, ", ", interval.end, ")"));
  return join(parts, " ");
}

json to_json(const std::vector<Interval>& intervals) {
  json list = json::array();
  for (const Interval& interval : intervals) list.push_back({interval.begin, interval.end});
  return list;
}

json parts_to_json(const ParamTable& table, const Placement& placement) {
  json parts = json::array();
  for (const StoredPart& part : placement.parts) {
    parts.push_back({{"slab", table.slabs()[part.slab].name},
                     {"elements", {part.elements.begin, part.elements.end}},
                     {"local_offset", part.local_offset}});
  }
  return parts;
}

/// The axes over which the gradient of a parameter is summed.
std::vector<std::string> gradient_axes(const Parameter& parameter, const ParamTable& table, const Layout& layout) {
  std::vector<std::string> names = {std::string(axis_name(Axis::Data))};
  if (table.slabs()[parameter.slab].is_common) {
    for (const Axis axis : partial_axes(table.slabs()[parameter.slab], layout)) names.emplace_back(axis_name(axis));
  }
  return names;
}

/// "128 of 512": rows of a unit that are this parameter's, section by section.
std::string rows_text(const Parameter& parameter) {
  std::vector<std::string> sections;
  for (const ParameterPiece& piece : parameter.pieces) sections.push_back(cat(piece.rows_per_unit));
  return cat(join(sections, " + "), " of ", parameter.pieces.front().unit_rows,
             parameter.transposed ? ", transposed" : "");
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(cat(size));
  return "[" + join(sizes, ", ") + "]";
}

void print_json(const ModelSource& model, const ParamTable& table, const Layout& layout,
                const std::vector<RankView>& ranks, const std::vector<std::string>& misfits,
                const std::vector<std::string>& folds) {
  json out = {{"model_type", model.spec().model_type},
              {"parameters", num_parameters(model.spec())},
              {"layout", layout.to_string()},
              {"world_size", layout.world_size()},
              {"weights_checked", model.has_weights()}};
  for (const RankView& view : ranks) {
    json coordinate = json::object();
    for (const AxisSize& axis : layout.mesh.axes()) {
      coordinate[std::string(axis_name(axis.axis))] = layout.mesh.index(view.rank, axis.axis);
    }
    out["ranks"].push_back(
        {{"rank", view.rank},
         {"coordinates", coordinate},
         {"bytes",
          {{"weights", view.bytes.weights}, {"gradients", view.bytes.gradients}, {"optimizer", view.bytes.optimizer}}},
         {"parts", parts_to_json(table, view.placement)},
         {"primary", to_json(view.placement.primary)},
         {"optimized", to_json(view.placement.optimized)}});
  }
  out["misfits"] = misfits;
  out["fold"] = folds;
  for (const Parameter& parameter : table.parameters()) {
    out["table"].push_back({{"name", parameter.name},
                            {"shape", parameter.shape},
                            {"slab", table.slabs()[parameter.slab].name},
                            {"uses", table.slabs()[parameter.slab].uses},
                            {"decays", table.slabs()[parameter.slab].decays},
                            {"gradient_axes", gradient_axes(parameter, table, layout)}});
  }
  std::cout << out.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

void print_text(const ModelSource& model, const ParamTable& table, const Layout& layout,
                const std::vector<RankView>& ranks, const std::vector<std::string>& misfits,
                const std::vector<std::string>& folds, bool intervals) {
  std::cout << model.spec().model_type << ", " << with_commas(num_parameters(model.spec())) << " parameters in "
            << table.parameters().size() << " tensors; "
            << (model.has_weights() ? "every weight read: finite, shapes and names as the config says"
                                    : "config only, no weights read")
            << "\nlayout: " << (layout.to_string().empty() ? "one rank" : layout.to_string()) << ", "
            << layout.world_size() << (layout.world_size() == 1 ? " rank" : " ranks") << "\n";
  for (const std::string& misfit : misfits) std::cout << "does not divide: " << misfit << "\n";
  for (const std::string& fold : folds) std::cout << fold << "\n";
  std::cout << "\n";
  Table bytes({"rank", "coordinates", "weights", "gradients", "optimizer", "total"});
  for (const RankView& view : ranks) {
    bytes.add({cat(view.rank), coordinates(layout.mesh, view.rank), format_bytes(view.bytes.weights),
               format_bytes(view.bytes.gradients), format_bytes(view.bytes.optimizer),
               format_bytes(view.bytes.weights + view.bytes.gradients + view.bytes.optimizer)});
  }
  std::cout << bytes.to_string();
  if (static_cast<int>(ranks.size()) < layout.world_size()) {
    std::cout << "(" << layout.world_size() - ranks.size() << " more ranks; choose one with --rank)\n";
  }
  if (!intervals) {
    std::cout << "\n--intervals lists the panels and the elements that each rank holds and optimizes.\n";
    return;
  }
  Table panels({"parameter", "shape", "panel", "rows per unit", "decay", "uses"});
  for (const Parameter& parameter : table.parameters()) {
    const Slab& slab = table.slabs()[parameter.slab];
    panels.add({parameter.name, shape_text(parameter.shape), slab.name, rows_text(parameter),
                slab.decays ? "yes" : "no", cat(slab.uses)});
  }
  std::cout << "\n" << panels.to_string();
  for (const RankView& view : ranks) {
    Table parts({"panel", "elements", "at"});
    for (const StoredPart& part : view.placement.parts) {
      parts.add({table.slabs()[part.slab].name, to_text({part.elements}), cat(part.local_offset)});
    }
    std::cout << "\nrank " << view.rank << " holds\n"
              << parts.to_string() << "optimizes, of its memory: " << to_text(view.placement.optimized)
              << "\nis primary for:            " << to_text(view.placement.primary) << "\n";
  }
}

int run_layout(const LayoutArguments& arguments) {
  const Layout layout = parse_runnable_layout(arguments.layout);
  const ElementType dtype = parse_element_type(arguments.dtype);
  const ModelSource model(arguments.model.path, 0);
  const ParamTable table(model.spec());
  if (arguments.rank && *arguments.rank >= layout.world_size()) {
    throw UsageError(cat("[cli] --rank ", *arguments.rank, ": the layout has ranks 0 to ", layout.world_size() - 1));
  }
  const std::vector<std::string> misfits = misfit_notes(table, layout, dtype);
  const std::vector<std::string> folds = fold_layout_notes(table, layout, dtype);
  constexpr int kMostRanks = 16;
  std::vector<RankView> ranks;
  const int first = arguments.rank.value_or(0);
  const int last = arguments.rank ? first + 1 : std::min(layout.world_size(), kMostRanks);
  for (int rank = first; rank < last; ++rank) {
    Placement placement = place(table, layout, rank);
    const StateBytes bytes = state_bytes(placement, dtype);
    ranks.push_back({rank, std::move(placement), bytes});
  }
  if (arguments.json_output) {
    print_json(model, table, layout, ranks, misfits, folds);
  } else {
    print_text(model, table, layout, ranks, misfits, folds, arguments.intervals);
  }
  return 0;
}

}  // namespace

void add_layout_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<LayoutArguments>();
  CLI::App* command = program.add_subcommand("layout", "Who holds what: coordinates, intervals, bytes by category");
  add_model_option(*command, arguments->model);
  command->add_option("--layout", arguments->layout, "Axes and degrees, as \"data=4:zero1\"; none: one rank");
  command->add_option("--dtype", arguments->dtype, "fp32, bf16 or fp64")->capture_default_str();
  command->add_option("--rank", arguments->rank, "Only this rank")->check(CLI::NonNegativeNumber);
  command->add_flag("--intervals", arguments->intervals, "List parameters, panels and intervals");
  add_json_option(*command, arguments->json_output);
  add_config_option(*command);
  command->footer(
      "For a folder every weight is read and checked; for a config.json only the config.\n"
      "Example: octavo layout DIR --layout data=2:zero1 --dtype bf16");
  command->callback([arguments, &run] { run = [arguments] { return run_layout(*arguments); }; });
}

}  // namespace octavo::cli
