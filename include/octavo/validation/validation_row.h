// A published figure, and what octavo says in its place.
#pragma once

#include <optional>
#include <string>

namespace octavo {

struct ValidationRow {
  std::string id, group, quantity;  // quantity: the key of "expect"
  std::string source = {};          // the first of the row's
  std::optional<double> predicted;  // in the published unit; absent: left out
  double published = 0;
  double tolerance = 0;  // relative
  std::string why;       // left out: the reason; else what the prediction is made of

  bool is_used() const { return predicted.has_value(); }
  double error() const { return is_used() && published != 0 ? *predicted / published - 1 : 0; }
  bool is_within() const { return is_used() && error() <= tolerance && error() >= -tolerance; }
};

}  // namespace octavo
