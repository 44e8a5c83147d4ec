// The best of the plans that a search prices: of each set of degrees, of each strategy, and the Pareto front.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "octavo/plan/search.h"

namespace octavo {

/// What is kept does not depend on the order in which plans come: ties go to the lower place.
class BestPlans {
 public:
  /// The plans that follow are of one set of degrees, the `place`-th of the space.
  void begin(std::int64_t place, const std::string& strategy);
  void offer(const StepPlan& plan, const MemoryEstimate& memory, const StepTime& time);
  void end();
  /// Whether a plan of these degrees that takes at least `least` cannot enter anything: others of them are as fast, and
  /// need no more memory.
  bool has_better(Seconds least, const MemoryEstimate& memory) const;

  /// `text` says the example, and is called for the first alone.
  template <class Text>
  void rule_out(Rule rule, std::size_t layouts, const Text& text) {
    Out& out = out_[static_cast<std::size_t>(rule)];
    if (out.layouts == 0) out = {0, place_, text()};
    out.layouts += static_cast<std::int64_t>(layouts);
  }

  /// Both are as if all plans had come to this one.
  void merge(BestPlans other);
  SearchResult result() const;

 private:
  struct Found {
    PricedPlan priced;
    std::int64_t place;
    bool operator<(const Found& other) const;
  };
  struct Out {
    std::int64_t layouts = 0, place = 0;
    std::string example;
  };
  using Front = std::vector<Found>;  // ascending in time, falling in memory
  static void add_to_front(Front& front, const StepPlan& plan, const MemoryEstimate& memory, const StepTime& time,
                           std::int64_t place);

  std::int64_t place_ = 0, priced_ = 0;
  std::string strategy_;
  std::optional<Found> here_;  // of the set of degrees at hand
  Front front_here_;           // likewise: what is ruled out must not hang on what else this thread has seen
  std::vector<Found> best_;
  Front front_;
  std::map<std::string, Found> strategies_;
  std::array<Out, kNumRules> out_;
};

}  // namespace octavo
