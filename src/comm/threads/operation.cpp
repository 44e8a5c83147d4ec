#include "comm/threads/operation.h"

#include <algorithm>

#include "comm/threads/call_text.h"
#include "comm/threads/transfer.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

int world_rank(const Operation& operation, int participant) {
  const std::vector<int>& ranks = operation.group->ranks();
  if (!is_point_to_point(operation.call.kind)) return ranks[participant];
  return ranks[participant == operation.participant ? operation.member : operation.call.peer];
}

/// Compares this rank's call with everyone's; poisons the group where they differ.
bool check_match(Operation& operation) {
  for (int participant = 0; participant < operation.lane->size(); ++participant) {
    const RawCall& other = operation.lane->call(participant, operation.number);
    if (calls_match(operation.call, other)) continue;
    const int here = operation.group->ranks()[operation.member];
    const std::string text = mismatch_text({.rank = here,
                                            .number = operation.number,
                                            .group = operation.group->name(),
                                            .here = operation.call,
                                            .there = other,
                                            .other = world_rank(operation, participant)},
                                           operation.group->ranks());
    operation.group->poison().set(here, {.rank = here, .kind = FailureKind::Mismatch, .text = text});
    return false;
  }
  return true;
}

void enter(Operation& operation, Stage stage) {
  operation.lane->set_stage(operation.participant, operation.number, stage);
  operation.stage = stage;
}

/// Runs `phase` if memory may be touched, then enters `next`.
bool work(Operation& operation, void (*phase)(Operation&), Stage next) {
  if (operation.group->poison().is_set()) return false;
  const SharedGroup::Access access(*operation.group, operation.member);
  if (!access) return false;
  phase(operation);
  enter(operation, next);
  return true;
}

/// One step of the operation's life; false if it must wait for somebody.
bool step(Operation& operation, SharedWorld& world) {
  Lane& lane = *operation.lane;
  switch (operation.stage) {
    case Stage::Queued:
      if (!lane.reusable(operation.number)) return false;
      lane.publish(operation.participant, operation.number, operation.call, operation.loan, operation.posted);
      operation.stage = Stage::Posted;
      return true;
    case Stage::Posted: {
      if (!lane.all_reached(operation.number, Stage::Posted) || !check_match(operation)) return false;
      operation.matched = 0;
      for (int participant = 0; participant < lane.size(); ++participant) {
        operation.matched = std::max(operation.matched, lane.posted(participant, operation.number));
      }
      const bool two_phases = operation.call.kind == Collective::AllReduce;
      return work(operation, first_phase, two_phases ? Stage::Reduced : Stage::Done);
    }
    case Stage::Reduced:
      if (!lane.all_reached(operation.number, Stage::Reduced)) return false;
      return work(operation, second_phase, Stage::Done);
    case Stage::Done:
      if (peers_touch(operation) && !lane.all_reached(operation.number, Stage::Done)) return false;
      if (operation.loan && !operation.loan->all_back()) return false;
      if (operation.loan) operation.loan->end();
      operation.done = world.now();
      operation.complete = true;
      return true;
  }
  return false;
}

}  // namespace

bool advance(Operation& operation, SharedWorld& world) {
  bool moved = false;
  while (!operation.complete && step(operation, world)) moved = true;
  return moved;
}

std::vector<int> missing_ranks(const Operation& operation) {
  // In the queue, an operation waits for the one that still holds its cells.
  const bool queued = operation.stage == Stage::Queued;
  const std::uint64_t number = queued ? Lane::previous_user(operation.number) : operation.number;
  const Stage stage = queued ? Stage::Done : operation.stage;
  std::vector<int> ranks;
  for (int participant = 0; participant < operation.lane->size(); ++participant) {
    const bool reads = stage == Stage::Done && operation.loan && !operation.loan->is_back(participant);
    if (reads || !operation.lane->reached(participant, number, stage)) {
      ranks.push_back(world_rank(operation, participant));
    }
  }
  return ranks;
}

std::string operation_name(const Operation& operation) {
  const bool receives = operation.call.kind == Collective::Receive;
  const int other = is_point_to_point(operation.call.kind) ? world_rank(operation, receives ? 0 : 1) : 0;
  return call_name({.call = operation.call,
                    .number = operation.number,
                    .group = operation.group->name(),
                    .peer = other,
                    .step = operation.step});
}

}  // namespace octavo
