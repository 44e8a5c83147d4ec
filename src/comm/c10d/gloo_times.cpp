// GlooGroup's exchange of posting times: who posted last is known only when everybody has said when it did.
#include <algorithm>

#include "comm/c10d/gloo_group.h"
#include "octavo/base/error.h"

namespace octavo {

/// `own` of every member, one after the other. All members give as many.
std::vector<double> GlooGroup::gather_numbers(const std::vector<double>& own) {
  std::vector<double> all(own.size() * ranks_.size());
  const RawCall call{.kind = Collective::AllGather,
                     .purpose = Purpose::Control,
                     .type = WireType::F64,
                     .peer = 0,
                     .count = static_cast<std::int64_t>(own.size()),
                     .in = reinterpret_cast<const std::byte*>(own.data()),
                     .out = reinterpret_cast<std::byte*>(all.data())};
  wait(start(call, exchange_plan(call, index_, size()), nullptr, /*booked=*/false));
  return all;
}

// Every member tells how many operations its lanes have posted since the last time, then when. A lane of sends fits the
// receiver's lane of receives; what only one side has posted yet is matched next time.
void GlooGroup::exchange_times() {
  if (size() == 1) return;
  std::vector<LaneKey> keys = {{Collective::Barrier, 0}};
  for (int peer = 0; peer < size(); ++peer) {
    keys.push_back({Collective::Send, peer});
    keys.push_back({Collective::Receive, peer});
  }
  std::vector<double> counts, times;
  for (const LaneKey& key : keys) {
    const auto& records = log_[key];
    counts.push_back(static_cast<double>(records.size()));
    for (const auto& record : records) times.push_back(record->posted);
  }
  const std::vector<double> all_counts = gather_numbers(counts);
  const auto count_of = [&](int member, std::size_t lane) {
    return static_cast<std::size_t>(all_counts[member * keys.size() + lane]);
  };
  std::vector<std::size_t> totals(size(), 0);
  for (int member = 0; member < size(); ++member) {
    for (std::size_t lane = 0; lane < keys.size(); ++lane) totals[member] += count_of(member, lane);
  }
  const std::size_t width = *std::max_element(totals.begin(), totals.end());
  if (width == 0) return;
  times.resize(width, 0);
  const std::vector<double> all_times = gather_numbers(times);
  const auto time_of = [&](int member, std::size_t lane, std::size_t number) -> Seconds {
    std::size_t place = member * width + number;
    for (std::size_t before = 0; before < lane; ++before) place += count_of(member, before);
    return all_times[place];
  };
  // A peer's lane that meets this one: its receives from this rank, or its sends to it.
  const auto partner = [&](std::size_t lane) -> std::size_t {
    return 1 + 2 * index_ + (keys[lane].first == Collective::Send ? 1 : 0);
  };
  for (std::size_t lane = 0; lane < keys.size(); ++lane) {
    auto& records = log_[keys[lane]];
    std::size_t common = records.size();
    if (lane == 0) {
      for (int member = 0; member < size(); ++member) common = std::min(common, count_of(member, 0));
    } else {
      common = std::min(common, count_of(keys[lane].second, partner(lane)));
    }
    for (std::size_t number = 0; number < common; ++number) {
      TransferRecord& record = *records[number];
      record.matched = record.posted;
      if (lane == 0) {
        for (int member = 0; member < size(); ++member) {
          record.matched = std::max(record.matched, time_of(member, 0, number));
        }
      } else {
        record.matched = std::max(record.matched, time_of(keys[lane].second, partner(lane), number));
      }
      if (!record.times) continue;  // its wait will know
      record.times->matched = record.matched;
      rank_.ledger().match(record.ticket, *record.times);
    }
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(common));
  }
}

}  // namespace octavo
