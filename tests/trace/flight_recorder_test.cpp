#include "octavo/trace/flight_recorder.h"

#include <doctest/doctest.h>

#include <chrono>

#include "octavo/trace/live_recorders.h"

namespace octavo {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

FlightCall some_call(int group) {
  return {.group = group,
          .purpose = Purpose::Gradients,
          .kind = Collective::AllReduce,
          .count = 1234567,
          .dtype = "float32"};
}

TEST_CASE("a recorder says of memory that is lent what the caller called it") {
  FlightRecorder recorder(0);
  FlightCall call = some_call(recorder.add_group("fold"));
  call.lends = true;
  for (const Collective kind : {Collective::Broadcast, Collective::Send, Collective::Receive}) {
    call.kind = kind;
    recorder.done(recorder.posted(call));
  }
  const std::string text = recorder.to_string();
  for (const char* part : {"#1 share over fold", "#2 lend over fold", "#3 borrow over fold"}) {
    CHECK(contains(text, part));
  }
}

TEST_CASE("a recorder keeps the last collectives with step and state") {
  FlightRecorder recorder(3);
  CHECK(contains(recorder.to_string(), "rank 3: no collective yet"));
  const int data = recorder.add_group("data");
  CHECK(recorder.add_group("tensor") != data);
  CHECK(recorder.add_group("data") == data);
  recorder.done(recorder.posted(some_call(data)));
  recorder.set_step(12);
  const std::int64_t open = recorder.posted(some_call(data));
  REQUIRE(recorder.entries().size() == 2);
  CHECK(recorder.entries()[0].done);
  CHECK(!recorder.entries()[0].step);
  CHECK(!recorder.entries()[1].done);
  CHECK(recorder.entries()[1].step == 12);
  const std::string text = recorder.to_string();
  CHECK(contains(text, "rank 3, the last 2 collectives:"));
  CHECK(contains(text, "#1 all_reduce over data for gradients, 1,234,567 float32, posted at 0.000 s, done after "));
  CHECK(
      contains(text, "#2 all_reduce over data for gradients, 1,234,567 float32, step 12, posted at 0.000 s, NOT DONE"));
  for (int count = 0; count < 100; ++count) recorder.done(recorder.posted(some_call(data)));
  CHECK(recorder.entries().size() == FlightRecorder::kKept);
  CHECK(recorder.entries().front().number == 102 - FlightRecorder::kKept + 1);
  recorder.done(open);  // forgotten since: changes nothing
  CHECK(recorder.entries().back().number == 102);
}

TEST_CASE("recording a collective takes a fraction of a microsecond") {
  FlightRecorder recorder(0);
  const int group = recorder.add_group("data");
  constexpr int kRounds = 200'000;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) recorder.done(recorder.posted(some_call(group)));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MESSAGE("ns per collective: " << 1e9 * seconds / kRounds);
  CHECK(seconds / kRounds < 2e-6);  // generous: sanitizers and busy machines
}

TEST_CASE("live recorders are listed by rank while they live") {
  LiveRecorders list;
  CHECK(list.to_string() == "no rank runs\n");
  const FlightRecorder first(1), second(0);
  {
    const LiveRecorders::Entry one(&list, first), two(&list, second);
    CHECK(list.to_string() == "rank 0: no collective yet\nrank 1: no collective yet\n");
  }
  CHECK(list.to_string() == "no rank runs\n");
  const LiveRecorders::Entry none(nullptr, first);
}

}  // namespace
}  // namespace octavo
