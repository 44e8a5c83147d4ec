#include "comm/c10d/world_clock.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr int kNumProbes = 8;

Seconds machine_clock() {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Tells apart machines that are up; containers of one machine share it, and its clock.
std::string machine_name() {
  std::string name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  return name;
}

std::string exact(Seconds seconds) {
  return cat(static_cast<std::int64_t>(seconds * 1e9));
}

Seconds from_text(const std::string& text) {
  return static_cast<Seconds>(std::strtoll(text.c_str(), nullptr, 10)) * 1e-9;
}

class Exchange {
 public:
  Exchange(KeyStore& store, int rank, std::chrono::milliseconds deadline)
      : store_(store), rank_(rank), deadline_(deadline) {}

  std::string get(const std::string& key) {
    const std::optional<std::string> value = store_.get(key, deadline_);
    if (!value)
      throw CommError(cat("[comm] rank ", rank_, ": no answer to ", key, " while the ranks set their clocks."));
    return *value;
  }

  ClockProbe ask(int number) {
    ClockProbe probe{.sent = machine_clock(), .answered = 0, .received = 0};
    store_.set(cat("clock/ask/", rank_, "/", number), "now");
    probe.answered = from_text(get(cat("clock/answer/", rank_, "/", number)));
    probe.received = machine_clock();
    return probe;
  }

  void answer(int rank, int number) {
    get(cat("clock/ask/", rank, "/", number));
    store_.set(cat("clock/answer/", rank, "/", number), exact(machine_clock()));
  }

 private:
  KeyStore& store_;
  const int rank_;
  const std::chrono::milliseconds deadline_;
};

}  // namespace

Seconds clock_offset(std::span<const ClockProbe> probes) {
  internal_check(!probes.empty(), "[comm] clock_offset: no probes.");
  const ClockProbe& best = *std::min_element(probes.begin(), probes.end(), [](const auto& a, const auto& b) {
    return a.received - a.sent < b.received - b.sent;
  });
  return best.answered - (best.sent + best.received) / 2;
}

WorldClock::WorldClock(KeyStore& store, int rank, int num_ranks, std::chrono::milliseconds deadline) {
  Exchange exchange(store, rank, deadline);
  const std::string machine = machine_name();
  if (rank == 0) {
    offset_ = -machine_clock();
    store.set("clock/origin", exact(-offset_));
    store.set("clock/machine", machine);
    for (int other = 1; other < num_ranks; ++other) {
      if (exchange.get(cat("clock/machine/", other)) == machine) continue;
      for (int number = 0; number < kNumProbes; ++number) exchange.answer(other, number);
    }
    return;
  }
  store.set(cat("clock/machine/", rank), machine);
  offset_ = -from_text(exchange.get("clock/origin"));
  if (exchange.get("clock/machine") == machine) return;
  std::vector<ClockProbe> probes;
  for (int number = 0; number < kNumProbes; ++number) probes.push_back(exchange.ask(number));
  offset_ += clock_offset(probes);
}

Seconds WorldClock::now() const {
  return machine_clock() + offset_;
}

}  // namespace octavo
