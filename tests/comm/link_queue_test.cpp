#include "comm/emulated/link_queue.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"
#include "octavo/comm/emulated_world.h"

using namespace octavo;

TEST_CASE("a transfer begins when it is matched and the one before it has left") {
  LinkQueue queue;
  const auto first = queue.add(1, 4), second = queue.add(2, 3), third = queue.add(20, 1);
  CHECK(queue.settle(first, 1) == 5);
  CHECK(queue.settle(second, 2) == 8);
  CHECK(queue.settle(third, 22) == 23);
  const auto late = queue.add(21, 2);
  CHECK(queue.settle(late, 21) == 25);
}

TEST_CASE("a late match holds up what was posted behind it") {
  LinkQueue queue;
  const auto first = queue.add(0, 1), second = queue.add(0, 1);
  CHECK(queue.settle(first, 10) == 11);
  CHECK(queue.settle(second, 0) == 12);
}

TEST_CASE("who waits for a later transfer first finds it behind the earlier ones") {
  LinkQueue queue;
  const auto first = queue.add(0, 4), second = queue.add(0, 2), third = queue.add(0, 1);
  CHECK(queue.settle(third, 0) == 7);
  CHECK(queue.settle(first, 0) == 4);
  CHECK(queue.settle(second, 1) == 6);
}

TEST_CASE("an earlier transfer that turns out to be matched late moves behind what was fixed in its way") {
  LinkQueue queue;
  const auto first = queue.add(0, 4), second = queue.add(0, 2), third = queue.add(0, 2);
  CHECK(queue.settle(second, 0) == 6);  // from 4 to 6
  CHECK(queue.settle(first, 3) == 10);  // 3 to 7 would overlap
  CHECK(queue.settle(third, 0) == 12);
}

TEST_CASE("a link is written as bandwidth and latency, in powers of ten or two") {
  CHECK(parse_link("5GB/s,20us").bytes_per_second == 5e9);
  CHECK(parse_link("5GB/s,20us").latency == doctest::Approx(20e-6));
  CHECK(parse_link("1.5 GiB/s, 0s").bytes_per_second == 1.5 * 1024 * 1024 * 1024);
  CHECK(parse_link("100mb/s,1ms").bytes_per_second == 1e8);
  CHECK(parse_link("1b/s,0.5ns").latency == doctest::Approx(5e-10));
  CHECK(parse_link("5GB/s,20us").to_string() == "5.0 GB/s, 20 us");
  for (const char* wrong : {"", "5GB/s", "5GB,20us", "5GB/s,20", "GB/s,20us", "-5GB/s,20us", "0GB/s,20us", "5GB/s,-1us",
                            "nanGB/s,1us", "infGB/s,1us", "5GB/s,20us,", "20us,5GB/s", "5Gbit/s,20us", "5GB/s,2000h"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_link(wrong), UsageError);
  }
}
