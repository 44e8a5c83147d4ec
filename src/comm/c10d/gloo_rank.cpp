#include "comm/c10d/gloo_rank.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "comm/c10d/gloo_group.h"
#include "comm/c10d/sockets.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

LinkDevice device_for(const Launch& launch) {
  const bool named = !launch.interface_name.empty();
  return open_device(launch.interface_name,
                     named ? "" : local_address_towards(launch.master_address, launch.master_port));
}

}  // namespace

GlooRank::GlooRank(const ProcessOptions& options)
    : launch_(options.launch),
      deadline_(options.deadline),
      check_calls_(options.check_calls),
      hosted_(host_store(launch_, deadline_)),
      store_(hosted_.place, launch_.rank, deadline_),
      meeting_(hosted_.place, launch_.rank, deadline_),
      board_(store_, launch_.world_size),
      device_((check_in(), device_for(launch_))),
      clock_(store_, launch_.rank, launch_.world_size, deadline_),
      recorder_(launch_.rank) {
  store_.be_brief();
}

GlooRank::~GlooRank() = default;

/// Returns when all ranks are there.
void GlooRank::check_in() {
  const std::string here = cat("[comm] rank ", rank(), ": ");
  const auto lost = [&] {
    return CommError(cat(here, "rank 0 at ", hosted_.place.address, ":", hosted_.place.port,
                         " was lost while the ranks started. Look at its output."));
  };
  const std::optional<std::string> agreed = store_.set_once("world-size", cat(size()));
  if (!agreed) throw lost();
  if (*agreed != cat(size())) {
    throw UsageError(cat(here, "the world has ", size(), " ranks here but ", *agreed,
                         " on another rank; start all ranks with the same WORLD_SIZE."));
  }
  if (store_.add(cat("present/", rank()), 1).value_or(1) > 1) {
    throw UsageError(
        cat(here, "another process has this rank too; give each its own RANK, and each job its own MASTER_PORT."));
  }
  if (store_.add("present", 1) == size()) store_.set("all-present", "yes");
  if (store_.get("all-present", deadline_)) return;
  std::vector<std::string> missing;
  for (int other = 0; other < size(); ++other) {
    const std::optional<std::int64_t> there = store_.add(cat("present/", other), 0);
    if (!there) throw lost();
    if (*there == 0) missing.push_back(cat(other));
  }
  constexpr std::size_t kMostNames = 8;
  const std::size_t num_missing = missing.size();
  if (num_missing > kMostNames) missing.resize(kMostNames);
  throw CommError(cat(here, "waited ", fixed(std::chrono::duration<double>(deadline_).count(), 1), " s for ",
                      num_missing == 1 ? "rank " : "ranks ", join(missing, ", "),
                      num_missing > kMostNames ? cat(" and ", num_missing - kMostNames, " more") : "", " of ", size(),
                      " to start. Look at their output."));
}

GlooGroup& GlooRank::split(const RankGroup& group) {
  const int number = num_splits_++;
  const std::string agreed = store_.set_once(cat("cut/", number), group.cut).value_or(group.cut);
  if (agreed != group.cut) {
    throw UsageError(
        cat("[comm] rank ", rank(), ": split #", number, " is ", group.cut, " here but ", agreed,
            " on another rank. Every rank must split the same mesh over the same axes in the same order."));
  }
  groups_.push_back(std::make_unique<GlooGroup>(*this, group, cat("group/", number, "/", group.ranks.front())));
  return *groups_.back();
}

void GlooRank::exchange_times() {
  for (const auto& group : groups_) group->exchange_times();
}

void GlooRank::leave() {
  board_.report_end(rank(), {.failed = false, .failure = {}});
  board_.await_all_ended(deadline_);
}

void GlooRank::fail(const Failure& failure) {
  board_.report_end(rank(), {.failed = true, .failure = failure});
  for (const auto& group : groups_) group->fail(failure);
  if (!hosted_.server) return;
  // The store ends with this process: let the others read in it why they fail. The one that was lost reads nothing.
  constexpr auto kPause = std::chrono::milliseconds(10);
  constexpr int kTries = 500, kTriesForOne = 30;
  int tries_for_one = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::int64_t missing = size() - board_.num_ended().value_or(size());
    if (missing == 0 || (missing == 1 && ++tries_for_one == kTriesForOne)) return;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace octavo
