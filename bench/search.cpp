// How many layouts a search prices, memory and time in full, per second of one core; and how long a whole search takes.
//
//     search_bench CONFIG [CLUSTER [TOKENS-OF-A-SEQUENCE [SEQUENCES-OF-A-BATCH]]]
#include "octavo/plan/search.h"

#include <chrono>
#include <iostream>

#include "octavo/base/text.h"

using namespace octavo;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cout << "search_bench CONFIG [CLUSTER [TOKENS-OF-A-SEQUENCE [SEQUENCES-OF-A-BATCH]]]\n";
    return 0;
  }
  const auto word = [&](int index, const char* otherwise) {
    return std::string(argc > index ? argv[index] : otherwise);
  };
  PlanRequest request{.model = read_model_spec(argv[1]),
                      .job = {std::stoll(word(3, "8192")), std::stoll(word(4, "512")), ElementType::BFloat16},
                      .cluster = read_cluster(word(2, "H100x8x128")),
                      .rules = find_time_rules("megatron-core", "H100").rules};
  request.memory_limit = default_memory_limit(request.cluster);
  SearchSpace one_core;
  one_core.threads = 1;
  const SearchResult single = search(request, one_core), all = search(request);
  std::cout << request.cluster.to_string() << ": " << with_commas(single.layouts) << " layouts, "
            << with_commas(single.priced) << " priced in full\n"
            << "one core:  " << fixed(single.seconds, 2) << " s, "
            << with_commas(static_cast<std::int64_t>(static_cast<double>(single.priced) / single.seconds))
            << " priced layouts/s\n"
            << "all cores: " << fixed(all.seconds, 2) << " s\n";
  // Each plan by itself, nothing shared: what `--layout` and a brute search would take.
  const MemoryModel memory(request.model, request.job);
  const TimeModel time(request.model, request.job, request.cluster, request.rules);
  constexpr int kRounds = 2000;
  double sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  int plans = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (const PricedPlan& plan : single.best) {
      sum += static_cast<double>(memory.peak(plan.plan).total()) + time.step(plan.plan).total;
      ++plans;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << "one by one: " << with_commas(static_cast<std::int64_t>(plans / seconds)) << " layouts/s (check "
            << (sum > 0) << ")\n";
  return 0;
}
