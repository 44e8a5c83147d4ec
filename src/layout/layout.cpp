#include "octavo/layout/layout.h"

#include <algorithm>
#include <charconv>
#include <type_traits>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// A set of words of which one may be chosen: the values of an enum of Layout, the first of them the default.
struct OptionSet {
  Axis axis;
  std::vector<std::string> words;
  int (*chosen)(const Layout&);
  void (*choose)(Layout&, int);
};

/// The set of `words` for a member of Layout.
template <auto member>
OptionSet option_set(Axis axis, std::vector<std::string> words) {
  return {axis, std::move(words), [](const Layout& layout) { return static_cast<int>(layout.*member); },
          [](Layout& layout, int value) {
            layout.*member = static_cast<std::remove_reference_t<decltype(layout.*member)>>(value);
          }};
}

std::vector<OptionSet> option_sets(Axis axis) {
  std::vector<OptionSet> sets = {
      option_set<&Layout::zero>(Axis::Data, {"zero0", "zero1", "zero3"}),
      option_set<&Layout::pipeline_form>(Axis::Pipeline, {"1f1b", "gpipe", "zb"}),
      option_set<&Layout::sequence_form>(Axis::Sequence, {"auto", "gather", "ring", "ulysses"}),
      option_set<&Layout::sequence_order>(Axis::Sequence, {"zigzag", "contiguous"}),
      option_set<&Layout::tensor_form>(Axis::Tensor, {"allreduce", "scatter"}),
      option_set<&Layout::misfit>(Axis::Tensor, {"refuse", "replicate", "pad"}),
      option_set<&Layout::fold_form>(Axis::Fold, {"auto", "weights", "activations"}),
      option_set<&Layout::fold_route>(Axis::Fold, {"ring", "direct"}),
      option_set<&Layout::fold_order>(Axis::Fold, {"zigzag", "contiguous"}),
  };
  std::erase_if(sets, [axis](const OptionSet& set) { return set.axis != axis; });
  return sets;
}

/// A word that ends in a number: "buckets-2".
struct NumberWord {
  Axis axis;
  std::string_view prefix;
  int Layout::*member;
  int least;
  std::string_view meaning, example;
};

constexpr int kMostInWord = 4096;
constexpr NumberWord kNumberWords[] = {
    {Axis::Fold, "buckets-", &Layout::fold_buckets, 1, "how many groups a rank's KV heads are taken in",
     "fold=2:buckets-2"},
    {Axis::Pipeline, "interleaved-", &Layout::virtual_stages, 2, "how many parts of the model a rank has",
     "pipeline=4:interleaved-2"},
};

/// ":scatter:pad": what differs from the defaults.
std::string options_text(const Layout& layout, Axis axis) {
  std::string text;
  for (const OptionSet& set : option_sets(axis)) {
    const int chosen = set.chosen(layout);
    if (chosen != 0 && chosen < static_cast<int>(set.words.size())) text += ":" + set.words[chosen];
  }
  for (const NumberWord& word : kNumberWords) {
    if (word.axis == axis && layout.*word.member > 1) text += cat(":", word.prefix, layout.*word.member);
  }
  return text;
}

bool is_built(Axis axis) {
  return axis == Axis::Data || axis == Axis::Tensor || axis == Axis::Fold;
}

Axis parse_axis(const std::string& name, std::string_view text) {
  if (auto axis = axis_from_name(name)) return *axis;
  std::vector<std::string> names;
  for (Axis axis : kAllAxes) names.emplace_back(axis_name(axis));
  const std::string close = nearest(name, names);
  throw UsageError(cat("[layout] \"", text, "\": \"", name, "\" is no axis; ",
                       close.empty() ? cat("the axes are ", join(names, ", ")) : cat("did you mean \"", close, "\"?")));
}

int parse_number_word(const NumberWord& known, const std::string& word, std::string_view text) {
  int number = 0;
  const char* begin = word.data() + known.prefix.size();
  const auto [end, error] = std::from_chars(begin, word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < known.least || number > kMostInWord) {
    throw UsageError(cat("[layout] \"", text, "\": \"", word, "\" has no number that fits; write ", known.meaning, ", ",
                         known.least, " to ", kMostInWord, ", as in ", known.example));
  }
  return number;
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

void parse_options(Layout& layout, Axis axis, const std::vector<std::string>& words, std::string_view text) {
  const std::vector<OptionSet> sets = option_sets(axis);
  std::vector<std::string> known;
  for (const OptionSet& set : sets) known.insert(known.end(), set.words.begin(), set.words.end());
  std::vector<bool> chosen(sets.size(), false);
  for (const NumberWord& number : kNumberWords) {
    if (number.axis == axis) known.push_back(cat(number.prefix, "N"));
  }
  for (const std::string& word : words) {
    bool found = false;
    for (const NumberWord& number : kNumberWords) {
      if (number.axis != axis || !word.starts_with(number.prefix)) continue;
      if (layout.*number.member > 1) {
        throw UsageError(cat("[layout] \"", text, "\": ", axis_name(axis), " takes ", number.prefix, "N once"));
      }
      layout.*number.member = parse_number_word(number, word, text);
      found = true;
    }
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const auto place = std::find(sets[i].words.begin(), sets[i].words.end(), word);
      if (place == sets[i].words.end()) continue;
      if (chosen[i]) {
        throw UsageError(
            cat("[layout] \"", text, "\": ", axis_name(axis), " takes one of ", join(sets[i].words, ", ")));
      }
      found = chosen[i] = true;
      sets[i].choose(layout, static_cast<int>(place - sets[i].words.begin()));
    }
    if (found) continue;
    throw UsageError(cat("[layout] \"", text, "\": ", axis_name(axis), " has no option \"", word, "\"; ",
                         known.empty() ? std::string("it has none") : cat("its options are ", join(known, ", "))));
  }
  if (axis == Axis::Pipeline && layout.virtual_stages > 1) {
    if (chosen.front()) {
      throw UsageError(cat("[layout] \"", text, "\": pipeline takes one of 1f1b, gpipe, zb, interleaved-N"));
    }
    layout.pipeline_form = PipelineForm::Interleaved;
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
    axes.push_back({axis, degree});
    parse_options(layout, axis, words, text);
  }
  layout.mesh = DeviceMesh(std::move(axes));
  return layout;
}

Layout with_degree(const Layout& layout, Axis axis, int degree) {
  std::vector<AxisSize> sizes;
  bool found = false;
  for (AxisSize entry : layout.mesh.axes()) {
    if (entry.axis == axis) {
      entry.size = degree;
      found = true;
    }
    if (entry.size > 1) sizes.push_back(entry);
  }
  if (!found && degree > 1) sizes.push_back({axis, degree});
  Layout changed = layout;
  changed.mesh = DeviceMesh(std::move(sizes));
  return changed;
}

void check_runnable(const Layout& layout) {
  for (const AxisSize& axis : layout.mesh.axes()) {
    if (axis.size == 1 || is_built(axis.axis)) continue;
    throw UsageError(cat("[layout] \"", layout.to_string(), "\": ", axis_name(axis.axis), "=", axis.size,
                         " can be priced (octavo plan, audit) but is not built to run; use ", axis_name(axis.axis),
                         "=1, or the data, tensor and fold axes"));
  }
  if (layout.zero == ZeroStage::Weights) {
    throw UsageError(cat("[layout] \"", layout.to_string(),
                         "\": zero3 can be priced (octavo plan, audit) but is not built to run; use zero1, or the fold "
                         "axis, which cuts weights too"));
  }
}

Layout parse_runnable_layout(std::string_view text) {
  Layout layout = parse_layout(text);
  check_runnable(layout);
  return layout;
}

std::string Layout::to_string() const {
  std::vector<std::string> words;
  for (const AxisSize& axis : mesh.axes()) {
    words.push_back(cat(axis_name(axis.axis), "=", axis.size, options_text(*this, axis.axis)));
  }
  // Options of an axis that the mesh lacks hold all the same.
  for (const Axis axis : kAllAxes) {
    const auto is_it = [axis](const AxisSize& entry) { return entry.axis == axis; };
    if (std::any_of(mesh.axes().begin(), mesh.axes().end(), is_it)) continue;
    if (const std::string options = options_text(*this, axis); !options.empty()) {
      words.push_back(cat(axis_name(axis), "=1", options));
    }
  }
  return join(words, " ");
}

}  // namespace octavo
