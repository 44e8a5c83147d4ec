#include "octavo/validation/identities.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "validation/answers.h"
#include "validation/golden_case.h"

namespace octavo {
namespace {

using nlohmann::json;

class Comparison {
 public:
  explicit Comparison(IdentityReport& report) : report_(report) {}

  void compare(const json& found, const json& wanted, double tolerance, const std::string& where) {
    if (wanted.is_object()) {
      for (const auto& entry : wanted.items()) {
        const std::string there = where + "." + entry.key();
        if (!found.is_object() || !found.contains(entry.key())) {
          report_.left_out.push_back(there + ": nothing answers it");
        } else {
          compare(found[entry.key()], entry.value(), tolerance, there);
        }
      }
      return;
    }
    if (found.is_binary() || (wanted.is_null() && found.is_null())) return;  // not_ours(), or both have none
    ++report_.figures;
    if (!is_same(found, wanted, tolerance)) {
      report_.wrong.push_back(cat(where, ": ", found.dump(), ", the file has ", wanted.dump()));
    }
  }

 private:
  static bool is_same(const json& found, const json& wanted, double tolerance) {
    if (wanted.is_array()) {
      if (!found.is_array() || found.size() != wanted.size()) return false;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!is_same(found[i], wanted[i], tolerance)) return false;
      }
      return true;
    }
    if (!wanted.is_number() || !found.is_number() || (wanted.is_number_integer() && found.is_number_integer())) {
      return found == wanted;
    }
    constexpr double kWrittenDigits = 6e-6, kRounding = 1e-11;
    const double real = wanted.get<double>();
    const double allowed = tolerance > 0 ? std::max(tolerance, kRounding) : kWrittenDigits;
    return std::abs(found.get<double>() - real) <= allowed * std::abs(real) + 1e-12;
  }

  IdentityReport& report_;
};

json answer_of(const std::vector<Answer>& answers, const json& item, std::string& why) {
  for (const Answer& answer : answers) {
    try {
      if (json found = answer(item); !found.is_null()) return found;
    } catch (const UsageError& error) {
      why = error.what();
      return {};
    } catch (const json::exception&) {
      why = "its input lacks a value, or has one of another type";
      return {};
    } catch (const std::logic_error&) {
      why = "a number in it cannot be read";
      return {};
    }
  }
  why = "nothing is known of cases of its kind";
  return {};
}

}  // namespace

IdentityReport check_identities(const json& file) {
  const json& cases = cases_of(file);
  const std::vector<Answer> answers = {audit_answer(file), activation_answer(file), pipeline_answer(),
                                       hardware_answer(),  flops_answer(file),      strategy_answer(file)};
  IdentityReport report;
  Comparison comparison(report);
  for (const json& item : cases) {
    const bool whole = item.is_object() && item.contains("id") && item["id"].is_string() && item.contains("expect") &&
                       item["expect"].is_object() && item.contains("input") && item["input"].is_object();
    if (!whole) {
      report.left_out.emplace_back("a case without id, input and expect");
      continue;
    }
    if (item["expect"].empty()) {
      report.left_out.push_back(cat(item["id"].get<std::string>(), ": it expects nothing"));
      continue;
    }
    if (item.value("kind", json("")) == "measurement" || item.value("kind", json("")) == "ranking" ||
        item.value("kind", json("")) == "capacity") {
      continue;
    }
    std::string why;
    const json found = answer_of(answers, item, why);
    if (found.is_null()) {
      report.left_out.push_back(cat(item["id"].get<std::string>(), ": ", why));
      continue;
    }
    const double tolerance = number_or_none(item, "tolerance_rel");
    if (!(tolerance >= 0 && tolerance <= 1)) {
      report.left_out.push_back(cat(item["id"].get<std::string>(), ": tolerance_rel ", tolerance, " is no share"));
      continue;
    }
    ++report.cases;
    comparison.compare(found, item["expect"], tolerance, item["id"]);
  }
  return report;
}

}  // namespace octavo
