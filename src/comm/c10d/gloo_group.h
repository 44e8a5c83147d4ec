// One rank's membership in a group of processes: what the gloo communicator calls, on raw memory.
//
// An operation is a plan of messages (exchange_plan.h). All its receives and its first sends start when it is posted;
// Gloo's thread moves them. A lane's helper thread waits for them in order, sums, and starts what comes next, so an
// operation gets on while the rank computes. Sums are in rank order by sum_over_ranks().
//
// How a failure spreads. Whoever notices one (its own exception, a deadline, a broken connection) keeps it as the
// group's failure, says it to all members as a farewell, and closes the connections. Closing ends every message in
// flight, so memory may be freed; peers find their connection broken, read the farewell, and do the same. The notes in
// the key store serve where a farewell cannot: a rank that returned, a reason that is known later, who is really late.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/c10d/gloo_operation.h"
#include "comm/c10d/gloo_rank.h"
#include "comm/threads/poison.h"

namespace octavo {

class GlooGroup {
 public:
  /// `prefix`: equal on all members, of no other group of the job. Collective over the group.
  GlooGroup(GlooRank& rank, const RankGroup& group, std::string prefix);
  ~GlooGroup();

  int index() const { return index_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::string& name() const { return name_; }

  /// An operation of this group, to be waited for exactly once, by wait() or abandon().
  struct Ticket {
    GlooLane* lane = nullptr;                  // null: done when it was posted
    std::shared_ptr<GlooOperation> operation;  // shared with the lane
    int exceptions_at_post = 0;
  };

  /// Posts a call, books it and returns at once. Memory as communicator.h says; `scratch` as the plan asks for.
  /// Throws CommError or UsageError if the group failed before.
  Ticket post(const RawCall& call, ExchangePlan plan, std::byte* scratch);
  /// Throws CommError after the deadline or if the group failed, UsageError if the ranks' calls differ. When it returns
  /// or throws, nobody touches the operation's memory any more.
  TransferTimes wait(const Ticket& ticket);
  /// The same without an error; if an exception is unwinding this rank, the group fails instead. Whether the operation
  /// was carried out.
  bool abandon(const Ticket& ticket) noexcept;

  /// As World::exchange_times(), of this group.
  void exchange_times();

  /// Fails the group unless it failed before, tells the members and ends all their waits.
  void fail(const Failure& failure);

 private:
  using LaneKey = std::pair<Collective, int>;  // direction and peer; of collectives: Barrier, 0

  static LaneKey lane_key(const RawCall& call);
  GlooLane& lane(const RawCall& call);
  Ticket start(const RawCall& call, ExchangePlan plan, std::byte* scratch, bool booked);
  void book(GlooOperation& operation);
  void start_messages(GlooOperation& operation);
  void start_sends(GlooOperation& operation, std::size_t phase);
  std::int32_t next_tag(const GlooOperation& operation, int peer, bool sends, std::vector<int>& slots) const;

  bool carry_out(GlooOperation& operation);
  void run_phases(GlooOperation& operation);
  void wait_for(GlooOperation& operation, std::vector<GlooOperation::Started>& messages);
  void wait_for(GlooOperation& operation, int peer, Flight& flight);
  void compare_calls(GlooOperation& operation);
  void broken(const GlooOperation& operation, int peer, const std::string& reason);

  void wait_until_settled(const Ticket& ticket, Seconds begin);
  void check_peer_ended(const Ticket& ticket, std::optional<int>& suspect);
  void give_up(const Ticket& ticket, Seconds begin);
  TransferTimes book_times(GlooOperation& operation, Seconds waited);
  [[noreturn]] void throw_failure(const GlooOperation& operation);
  std::string operation_name(const GlooOperation& operation) const;
  std::vector<double> gather_numbers(const std::vector<double>& own);

  GlooRank& rank_;
  const std::string name_;
  const std::vector<int> ranks_;
  const std::string prefix_;
  const int index_;
  int ledger_group_ = 0;
  Poison poison_;
  std::unique_ptr<PeerLinks> links_;                                     // null in a group of one
  std::map<LaneKey, std::vector<std::shared_ptr<TransferRecord>>> log_;  // since the last exchange of times
  std::map<LaneKey, std::unique_ptr<GlooLane>> lanes_;                   // last: their threads use all of the above
};

}  // namespace octavo
