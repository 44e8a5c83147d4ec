#include "plan/best_plans.h"

#include <algorithm>

namespace octavo {

bool BestPlans::Found::operator<(const Found& other) const {
  const Seconds mine = priced.time.total, others = other.priced.time.total;
  return mine < others || (mine == others && place < other.place);
}

void BestPlans::begin(std::int64_t place, const std::string& strategy) {
  place_ = place;
  strategy_ = strategy;
  here_.reset();
  front_here_.clear();
}

void BestPlans::offer(const StepPlan& plan, const MemoryEstimate& memory, const StepTime& time) {
  ++priced_;
  if (!here_ || time.total < here_->priced.time.total) here_ = Found{{plan, memory, time}, place_};
  add_to_front(front_here_, plan, memory, time, place_);
}

void BestPlans::end() {
  if (!here_) return;
  const auto [known, is_new] = strategies_.try_emplace(strategy_, *here_);
  if (!is_new && *here_ < known->second) known->second = *here_;
  best_.push_back(std::move(*here_));
  here_.reset();
  for (const Found& found : front_here_) {
    add_to_front(front_, found.priced.plan, found.priced.memory, found.priced.time, found.place);
  }
}

bool BestPlans::has_better(Seconds least, const MemoryEstimate& memory) const {
  const auto behind =
      std::upper_bound(front_here_.begin(), front_here_.end(), least,
                       [](Seconds seconds, const Found& other) { return seconds < other.priced.time.total; });
  return behind != front_here_.begin() && std::prev(behind)->priced.memory.total() <= memory.total();
}

void BestPlans::add_to_front(Front& front, const StepPlan& plan, const MemoryEstimate& memory, const StepTime& time,
                             std::int64_t place) {
  const Bytes bytes = memory.total();
  const auto behind = std::upper_bound(front.begin(), front.end(), time.total, [](Seconds seconds, const Found& other) {
    return seconds < other.priced.time.total;
  });
  if (behind != front.begin()) {
    Found& before = *std::prev(behind);
    if (before.priced.memory.total() <= bytes) {
      const bool is_same = before.priced.memory.total() == bytes && before.priced.time.total == time.total;
      if (is_same && place < before.place) before = {{plan, memory, time}, place};
      return;
    }
  }
  // Those as fast with more memory stand right in front, those slower with no less behind.
  const auto first =
      behind != front.begin() && std::prev(behind)->priced.time.total == time.total ? std::prev(behind) : behind;
  const auto last =
      std::find_if(behind, front.end(), [&](const Found& other) { return other.priced.memory.total() < bytes; });
  front.insert(front.erase(first, last), Found{{plan, memory, time}, place});
}

void BestPlans::merge(BestPlans other) {
  priced_ += other.priced_;
  for (Found& found : other.best_) best_.push_back(std::move(found));
  for (auto& [name, found] : other.strategies_) {
    const auto [known, is_new] = strategies_.try_emplace(name, found);
    if (!is_new && found < known->second) known->second = std::move(found);
  }
  for (const Found& found : other.front_) {
    add_to_front(front_, found.priced.plan, found.priced.memory, found.priced.time, found.place);
  }
  for (int rule = 0; rule < kNumRules; ++rule) {
    Out &mine = out_[rule], &others = other.out_[rule];
    if (others.layouts == 0) continue;
    if (mine.layouts == 0 || others.place < mine.place) {
      mine.place = others.place;
      mine.example = std::move(others.example);
    }
    mine.layouts += others.layouts;
  }
}

SearchResult BestPlans::result() const {
  SearchResult result;
  std::vector<Found> best = best_, strategies;
  std::sort(best.begin(), best.end());
  for (Found& found : best) result.best.push_back(std::move(found.priced));
  for (const Found& found : front_) result.front.push_back(found.priced);
  for (const auto& [name, found] : strategies_) strategies.push_back(found);
  std::sort(strategies.begin(), strategies.end());
  for (Found& found : strategies) {
    result.strategies.push_back({strategy_name(found.priced.plan.layout), std::move(found.priced)});
  }
  result.priced = result.layouts = priced_;
  for (int rule = 0; rule < kNumRules; ++rule) {
    result.ruled_out[rule] = {out_[rule].layouts, out_[rule].example};
    result.layouts += out_[rule].layouts;
  }
  return result;
}

}  // namespace octavo
