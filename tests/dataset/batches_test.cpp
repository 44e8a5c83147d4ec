#include "octavo/dataset/batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "dataset/temp_file.h"
#include "octavo/base/error.h"

using namespace octavo;

namespace {

// A file whose token at place p is p, so that a token tells where it was read.
TempFile counting_file(std::int64_t size) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return TempFile(token_file<std::uint32_t>(static_cast<std::uint32_t>(size), ids), ".bin");
}

std::vector<std::int64_t> epoch_begins(const Batches& batches, std::int64_t epoch) {
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < batches.windows_per_epoch(); ++i) {
    const std::int64_t visit = epoch * batches.windows_per_epoch() + i;
    begins.push_back(batches.begin(visit / batches.batch_size(), visit % batches.batch_size()));
  }
  return begins;
}

}  // namespace

TEST_CASE("a sequence holds the tokens of one window and the tokens that follow as labels") {
  const TempFile file = counting_file(100);
  const TokenSource source(file.path());
  const Batches batches(source, {.sequence_length = 7, .batch_size = 3, .seed = 1});
  for (std::int64_t step = 0; step < 20; ++step) {
    for (std::int64_t index = 0; index < 3; ++index) {
      const Sequence sequence = batches.sequence(step, index);
      REQUIRE(sequence.tokens.size() == 7);
      REQUIRE(sequence.labels.size() == 7);
      for (std::size_t t = 0; t < 7; ++t) {
        CHECK(sequence.tokens[t] == batches.begin(step, index) + static_cast<std::int64_t>(t));
        CHECK(sequence.labels[t] == sequence.tokens[t] + 1);
      }
    }
    CHECK(batches.num_labels(step) == 21);
  }
}

TEST_CASE("each epoch visits each window exactly once, in another order and with other borders") {
  for (const std::int64_t size : {11, 19, 20, 21, 30, 99, 100, 101, 1000}) {
    const TempFile file = counting_file(size);
    const TokenSource source(file.path());
    const Batches batches(source, {.sequence_length = 10, .batch_size = 4, .seed = 3});
    CHECK(batches.windows_per_epoch() == std::max<std::int64_t>(1, size / 10 - 1));
    std::set<std::int64_t> offsets;
    for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
      std::vector<std::int64_t> begins = epoch_begins(batches, epoch);
      std::sort(begins.begin(), begins.end());
      for (std::size_t i = 0; i < begins.size(); ++i) {
        REQUIRE(begins[i] == begins[0] + 10 * static_cast<std::int64_t>(i));
      }
      REQUIRE(begins[0] >= 0);
      REQUIRE(begins[0] < 10);
      REQUIRE(begins.back() + 10 < size);
      offsets.insert(begins[0]);
    }
    // 60 draws leave out one of 10 offsets with a chance of 2%; of the 1, 9 or 10 that fit most must have been seen.
    CHECK(std::ssize(offsets) >= std::min<std::int64_t>(size - 10, 10) - 2);
  }
  const TempFile file = counting_file(1000);
  const TokenSource source(file.path());
  const Batches batches(source, {.sequence_length = 10, .batch_size = 4, .seed = 3});
  const auto order = [&](std::int64_t epoch) {
    std::vector<std::int64_t> windows = epoch_begins(batches, epoch);
    for (std::int64_t& begin : windows) begin /= 10;
    return windows;
  };
  CHECK(order(0) != order(1));
  CHECK_FALSE(std::is_sorted(epoch_begins(batches, 0).begin(), epoch_begins(batches, 0).end()));
}

TEST_CASE("batches are a function of seed, step and index alone") {
  const TempFile file = counting_file(5000);
  const TokenSource source(file.path());
  const Batches::Config config{.sequence_length = 16, .batch_size = 8, .seed = 42};
  const Batches one(source, config), same(source, config);
  const Batches other(source, {.sequence_length = 16, .batch_size = 8, .seed = 43});
  int equal_to_other = 0;
  for (std::int64_t step = 99; step >= 0; --step) {
    for (std::int64_t index = 7; index >= 0; --index) {
      CHECK(one.sequence(step, index).tokens == same.sequence(step, index).tokens);
      equal_to_other += one.begin(step, index) == other.begin(step, index);
    }
  }
  CHECK(equal_to_other < 20);
  // Another batch size is the same stream of visits, cut elsewhere.
  const Batches wider(source, {.sequence_length = 16, .batch_size = 16, .seed = 42});
  CHECK(wider.begin(3, 9) == one.begin(7, 1));
}

TEST_CASE("files and sizes that give no batch are refused") {
  const TempFile file = counting_file(10);
  const TokenSource source(file.path());
  CHECK_NOTHROW(Batches(source, {.sequence_length = 9, .batch_size = 1}));
  CHECK_THROWS_WITH_AS(Batches(source, {.sequence_length = 10, .batch_size = 1}),
                       doctest::Contains("has 10 tokens; sequence_length=10 needs at least 11"), UsageError);
  CHECK_THROWS_AS(Batches(source, {.sequence_length = 0, .batch_size = 1}), UsageError);
  CHECK_THROWS_AS(Batches(source, {.sequence_length = 1, .batch_size = 0}), UsageError);
  const Batches batches(source, {.sequence_length = 4, .batch_size = 2});
  CHECK_THROWS_AS(batches.sequence(0, 2), InternalError);
  CHECK_THROWS_AS(batches.sequence(-1, 0), InternalError);
  CHECK_THROWS_AS(batches.num_labels(-1), InternalError);
}

TEST_CASE("validation predicts every token but the first exactly once, in order") {
  for (const std::int64_t size : {2, 7, 8, 9, 20, 21, 22, 50}) {
    const TempFile file = counting_file(size);
    const TokenSource source(file.path());
    const ValidationBatches batches(source, /*sequence_length=*/7, /*batch_size=*/3);
    std::vector<std::int64_t> predicted;
    for (std::int64_t step = 0; step < batches.num_steps(); ++step) {
      std::int64_t labels = 0;
      for (std::int64_t index = 0; index < 3; ++index) {
        const Sequence sequence = batches.sequence(step, index);
        REQUIRE(sequence.tokens.size() == 7);
        REQUIRE(sequence.labels.size() == 7);
        for (std::size_t t = 0; t < 7; ++t) {
          if (sequence.labels[t] == kIgnoredLabel) continue;
          CHECK(sequence.labels[t] == sequence.tokens[t] + 1);
          predicted.push_back(sequence.labels[t]);
          ++labels;
        }
      }
      CHECK(batches.num_labels(step) == labels);
      CHECK(labels > 0);
    }
    std::vector<std::int64_t> expected(static_cast<std::size_t>(size) - 1);
    std::iota(expected.begin(), expected.end(), 1);
    CHECK(predicted == expected);
    CHECK(batches.num_sequences() == (size - 1 + 6) / 7);
    CHECK(batches.num_labels(batches.num_steps()) == 0);
  }
}

TEST_CASE("validation needs a token to predict") {
  const TempFile file = counting_file(1);
  const TokenSource source(file.path());
  CHECK_THROWS_AS(ValidationBatches(source, 4, 1), UsageError);
}
