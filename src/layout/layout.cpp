#include "octavo/layout/layout.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// The options of an axis: sets of which one word may be chosen; the first of a set is its default.
std::vector<std::vector<std::string>> option_sets(Axis axis) {
  switch (axis) {
    case Axis::Data:
      return {{"zero0", "zero1"}};
    case Axis::Pipeline:
    case Axis::Expert:
    case Axis::Sequence:
    case Axis::Fold:
    case Axis::Tensor:
      return {};
  }
  throw InternalError("[layout] unknown axis");
}

bool is_built(Axis axis) {
  return axis == Axis::Data;
}

Axis parse_axis(const std::string& name, std::string_view text) {
  if (auto axis = axis_from_name(name)) return *axis;
  std::vector<std::string> names;
  for (Axis axis : kAllAxes) names.emplace_back(axis_name(axis));
  const std::string close = nearest(name, names);
  throw UsageError(cat("[layout] \"", text, "\": \"", name, "\" is no axis; ",
                       close.empty() ? cat("the axes are ", join(names, ", ")) : cat("did you mean \"", close, "\"?")));
}

int parse_degree(const std::string& word, const std::string& axis, std::string_view text) {
  int degree = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), degree);
  if (error == std::errc::result_out_of_range) {
    throw UsageError(cat("[layout] \"", text, "\": ", axis, "=", word, " is too large; a degree fits in 32 bits"));
  }
  if (word.empty() || error != std::errc() || end != word.data() + word.size() || degree < 1) {
    throw UsageError(cat("[layout] \"", text, "\": the degree of ", axis, " is \"", word,
                         "\"; write a whole number of ranks, at least 1, as in ", axis, "=2"));
  }
  return degree;
}

void apply_option(Layout& layout, const std::string& option) {
  if (option == "zero0") layout.zero = ZeroStage::None;
  if (option == "zero1") layout.zero = ZeroStage::Optimizer;
}

void parse_options(Layout& layout, Axis axis, const std::vector<std::string>& words, std::string_view text) {
  const auto sets = option_sets(axis);
  std::vector<bool> chosen(sets.size(), false);
  for (const std::string& word : words) {
    const auto set = std::find_if(sets.begin(), sets.end(), [&](const auto& candidates) {
      return std::find(candidates.begin(), candidates.end(), word) != candidates.end();
    });
    if (set == sets.end()) {
      std::vector<std::string> known;
      for (const auto& candidates : sets) known.insert(known.end(), candidates.begin(), candidates.end());
      throw UsageError(cat("[layout] \"", text, "\": ", axis_name(axis), " has no option \"", word, "\"; ",
                           known.empty() ? std::string("it has none") : cat("its options are ", join(known, ", "))));
    }
    if (chosen[set - sets.begin()]) {
      throw UsageError(cat("[layout] \"", text, "\": ", axis_name(axis), " takes one of ", join(*set, ", ")));
    }
    chosen[set - sets.begin()] = true;
    apply_option(layout, word);
  }
}

}  // namespace

Layout parse_layout(std::string_view text) {
  Layout layout;
  std::vector<AxisSize> axes;
  std::string spaced(text);
  std::replace_if(
      spaced.begin(), spaced.end(), [](unsigned char c) { return c == '\t' || c == '\n' || c == ','; }, ' ');
  for (const std::string& word : split(spaced, ' ')) {
    if (word.empty()) continue;
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      throw UsageError(cat("[layout] \"", text, "\": \"", word, "\" is not axis=degree, as in data=2"));
    }
    const Axis axis = parse_axis(word.substr(0, equals), text);
    std::vector<std::string> words = split(word.substr(equals + 1), ':');
    const int degree = parse_degree(words.front(), std::string(axis_name(axis)), text);
    words.erase(words.begin());
    if (degree > 1 && !is_built(axis)) {
      throw UsageError(cat("[layout] \"", text, "\": ", axis_name(axis), "=", degree, " is not built; use ",
                           axis_name(axis), "=1 or the data axis"));
    }
    axes.push_back({axis, degree});
    parse_options(layout, axis, words, text);
  }
  layout.mesh = DeviceMesh(std::move(axes));
  return layout;
}

std::string Layout::to_string() const {
  std::vector<std::string> words;
  bool has_data = false;
  for (const AxisSize& axis : mesh.axes()) {
    std::string word = cat(axis_name(axis.axis), "=", axis.size);
    if (axis.axis == Axis::Data) {
      has_data = true;
      if (zero == ZeroStage::Optimizer) word += ":zero1";
    }
    words.push_back(word);
  }
  if (!has_data && zero == ZeroStage::Optimizer) words.push_back("data=1:zero1");
  return join(words, " ");
}

}  // namespace octavo
