#include "octavo/trace/ledger.h"

#include <doctest/doctest.h>

namespace octavo {
namespace {

Transfer transfer(int group, Purpose purpose, Collective kind, Bytes logical) {
  return {.group = group,
          .purpose = purpose,
          .kind = kind,
          .logical = logical,
          .copied = logical / 2,
          .peer = std::nullopt,
          .posted = 1.0};
}

TEST_CASE("a ledger sums transfers of the same group, purpose and kind and keeps others apart") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  const int fold = ledger.add_group("fold");
  (void)ledger.post(transfer(fold, Purpose::Weights, Collective::Broadcast, 100));
  (void)ledger.post(transfer(data, Purpose::Gradients, Collective::AllReduce, 40));
  (void)ledger.post(transfer(data, Purpose::Gradients, Collective::AllReduce, 60));
  (void)ledger.post(transfer(data, Purpose::Norm, Collective::AllReduce, 8));
  const auto rows = ledger.rows();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].group == "data");
  CHECK(rows[0].purpose == Purpose::Gradients);
  CHECK(rows[0].count == 2);
  CHECK(rows[0].logical == 100);
  CHECK(rows[0].copied == 50);
  CHECK(rows[1].purpose == Purpose::Norm);
  CHECK(rows[2].group == "fold");
  CHECK(rows[2].kind == Collective::Broadcast);
  CHECK(ledger.logical_bytes() == 208);
}

TEST_CASE("a group keeps its number when it is named again") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  CHECK(ledger.add_group("fold") != data);
  CHECK(ledger.add_group("data") == data);
  CHECK(ledger.group_name(data) == "data");
}

TEST_CASE("waiting splits where the last rank had posted") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  const auto ticket = ledger.post(transfer(data, Purpose::Gradients, Collective::AllReduce, 40));
  // Blocked from 2 to 5; the last rank came at 4.
  ledger.finish(ticket, {.matched = 4, .done = 5, .waited = 3});
  CHECK(ledger.rows()[0].waited == doctest::Approx(3));
  CHECK(ledger.rows()[0].skew == doctest::Approx(2));
  const auto hidden = ledger.post(transfer(data, Purpose::Gradients, Collective::AllReduce, 40));
  ledger.finish(hidden, {.matched = 4, .done = 5, .waited = 0});
  CHECK(ledger.rows()[0].waited == doctest::Approx(3));
  CHECK(ledger.rows()[0].skew == doctest::Approx(2));
}

TEST_CASE("entries are kept in the order of posting once they are asked for") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  const auto unkept = ledger.post(transfer(data, Purpose::Loss, Collective::AllReduce, 8));
  ledger.keep_entries(true);
  const auto first = ledger.post(transfer(data, Purpose::Norm, Collective::AllReduce, 8));
  (void)ledger.post(transfer(data, Purpose::Weights, Collective::AllGather, 16));
  ledger.finish(first, {.matched = 2, .done = 3, .waited = 0});
  ledger.finish(unkept, {.matched = 9, .done = 9, .waited = 0});
  REQUIRE(ledger.entries().size() == 2);
  CHECK(ledger.entries()[0].transfer.purpose == Purpose::Norm);
  CHECK(ledger.entries()[0].times.done == 3);
  CHECK(ledger.entries()[1].times.done == 0);
}

TEST_CASE("a transfer that crosses a reset finishes in the new step and leaves its entries alone") {
  Ledger ledger;
  ledger.keep_entries(true);
  const int data = ledger.add_group("data");
  const auto crossing = ledger.post(transfer(data, Purpose::Norm, Collective::AllReduce, 8));
  ledger.reset();
  CHECK(ledger.rows().empty());
  const auto inside = ledger.post(transfer(data, Purpose::Norm, Collective::AllReduce, 8));
  ledger.finish(crossing, {.matched = 1, .done = 2, .waited = 1});
  ledger.finish(inside, {.matched = 3, .done = 4, .waited = 0});
  REQUIRE(ledger.entries().size() == 1);
  CHECK(ledger.entries()[0].times.done == 4);
  CHECK(ledger.rows()[0].count == 1);
  CHECK(ledger.rows()[0].waited == doctest::Approx(1));
}

TEST_CASE("the table names axes, purpose and kind of every row") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  (void)ledger.post(transfer(data, Purpose::KeysValues, Collective::AllGather, 2'000'000));
  const std::string table = ledger_table(ledger.rows());
  CHECK(table.find("data") != std::string::npos);
  CHECK(table.find("keys_values") != std::string::npos);
  CHECK(table.find("all_gather") != std::string::npos);
  CHECK(table.find("2.0 MB") != std::string::npos);
  CHECK(table.find("predicted") == std::string::npos);
}

TEST_CASE("the table splits waiting, and shows what was predicted beside what was booked") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  const auto ticket = ledger.post(transfer(data, Purpose::Gradients, Collective::AllReduce, 2'000'000));
  ledger.finish(ticket, {.matched = 4, .done = 5, .waited = 3});
  std::vector<LedgerRow> predicted = ledger.rows();
  predicted[0].logical = 3'000'000;
  predicted.push_back(predicted[0]);
  predicted[1].purpose = Purpose::Norm;
  const std::string table = ledger_table(ledger.rows(), predicted);
  CHECK(table ==
        "axes  purpose    kind        count  predicted  logical  copied  waiting    skew  exposed\n"
        "data  gradients  all_reduce      1     3.0 MB   2.0 MB  1.0 MB   3.00 s  2.00 s   1.00 s\n"
        "data  norm       all_reduce      0     3.0 MB      0 B     0 B      0 s     0 s      0 s\n");
}

TEST_CASE("booked traffic that was not predicted, and the reverse, is named with both numbers") {
  Ledger ledger;
  const int data = ledger.add_group("data");
  (void)ledger.post(transfer(data, Purpose::Gradients, Collective::AllReduce, 1000));
  (void)ledger.post(transfer(data, Purpose::Norm, Collective::AllReduce, 16));
  const auto rows = ledger.rows();
  CHECK(traffic_differences(rows, rows).empty());
  std::vector<LedgerRow> more = rows, other = rows;
  more[0].count = 2;
  CHECK(traffic_differences(more, rows) ==
        std::vector<std::string>{"data gradients all_reduce: booked 1 of 1,000 B, predicted 2 of 1,000 B"});
  other[1].kind = Collective::AllGather;
  CHECK(traffic_differences(other, rows) ==
        std::vector<std::string>{"data norm all_reduce: booked 1 of 16 B, predicted 0 of 0 B",
                                 "data norm all_gather: booked 0 of 0 B, predicted 1 of 16 B"});
}

}  // namespace
}  // namespace octavo
