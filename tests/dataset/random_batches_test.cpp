#include "octavo/dataset/random_batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "octavo/base/error.h"

using namespace octavo;

namespace {

std::int64_t labels_of(const Sequence& sequence) {
  return std::ssize(sequence.labels) - std::count(sequence.labels.begin(), sequence.labels.end(), kIgnoredLabel);
}

}  // namespace

TEST_CASE("random batches keep another number of labels in every sequence and very few in one") {
  const RandomBatches batches({.vocab_size = 100, .sequence_length = 64, .batch_size = 5, .seed = 1});
  std::set<std::int64_t> fewest_at, totals;
  for (std::int64_t step = 0; step < 50; ++step) {
    std::set<std::int64_t> counts;
    std::int64_t total = 0;
    for (std::int64_t index = 0; index < 5; ++index) {
      const std::int64_t kept = labels_of(batches.sequence(step, index));
      CHECK(kept >= 1);
      if (kept <= 4) fewest_at.insert(index);
      counts.insert(kept);
      total += kept;
    }
    CHECK(counts.size() == 5);
    CHECK(*counts.begin() <= 4);
    CHECK(*counts.rbegin() > 50);
    CHECK(batches.num_labels(step) == total);
    totals.insert(total);
  }
  CHECK(fewest_at.size() == 5);  // the sequence with few labels is not always the same
  CHECK(totals.size() > 10);
}

TEST_CASE("random tokens fill the vocabulary and labels are the next tokens") {
  const RandomBatches batches({.vocab_size = 11, .sequence_length = 50, .batch_size = 3, .seed = 2});
  std::set<std::int64_t> seen;
  std::size_t ignored_last = 0;
  for (std::int64_t step = 0; step < 10; ++step) {
    for (std::int64_t index = 0; index < 3; ++index) {
      const Sequence sequence = batches.sequence(step, index);
      REQUIRE(sequence.tokens.size() == 50);
      REQUIRE(sequence.labels.size() == 50);
      seen.insert(sequence.tokens.begin(), sequence.tokens.end());
      for (std::size_t t = 0; t + 1 < 50; ++t) {
        if (sequence.labels[t] != kIgnoredLabel) CHECK(sequence.labels[t] == sequence.tokens[t + 1]);
      }
      ignored_last += sequence.labels.back() == kIgnoredLabel;
    }
  }
  CHECK(seen.size() == 11);
  CHECK(*seen.begin() == 0);
  CHECK(*seen.rbegin() == 10);
  CHECK(ignored_last > 0);
  CHECK(ignored_last < 30);
}

TEST_CASE("random batches are a function of seed, step and index alone") {
  const RandomBatches::Config config{.vocab_size = 1000, .sequence_length = 32, .batch_size = 4, .seed = 9};
  const RandomBatches one(config), same(config);
  RandomBatches::Config changed = config;
  changed.seed = 10;
  const RandomBatches other(changed);
  CHECK(one.sequence(3, 2).tokens == same.sequence(3, 2).tokens);
  CHECK(one.sequence(3, 2).labels == same.sequence(3, 2).labels);
  CHECK(one.sequence(3, 2).tokens != other.sequence(3, 2).tokens);
  CHECK(one.sequence(3, 2).tokens != one.sequence(3, 3).tokens);
  CHECK(one.sequence(3, 2).tokens != one.sequence(4, 2).tokens);
}

TEST_CASE("random batches of the smallest sizes still have a label in every sequence") {
  for (const std::int64_t length : {1, 2, 3, 17}) {
    for (const std::int64_t batch_size : {1, 2, 7}) {
      const RandomBatches batches({.vocab_size = 2, .sequence_length = length, .batch_size = batch_size});
      for (std::int64_t index = 0; index < batch_size; ++index) {
        const std::int64_t kept = labels_of(batches.sequence(0, index));
        CHECK(kept >= 1);
        CHECK(kept <= length);
      }
    }
  }
}

TEST_CASE("random batches refuse sizes out of range") {
  CHECK_THROWS_AS(RandomBatches({.vocab_size = 0, .sequence_length = 1, .batch_size = 1}), UsageError);
  CHECK_THROWS_AS(RandomBatches({.vocab_size = std::int64_t{1} << 31, .sequence_length = 1, .batch_size = 1}),
                  UsageError);
  CHECK_THROWS_AS(RandomBatches({.vocab_size = 5, .sequence_length = 0, .batch_size = 1}), UsageError);
}
