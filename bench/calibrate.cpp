// Fits the constants of plan/time_rules.h to published step times and prints them as lines of time_rules_table.cpp:
//
//     calibrate_bench FILE SOFTWARE ACCELERATOR CONSTANT[=start] ...
//
// -CONSTANT=value sets one without fitting it; ~TEXT leaves rows whose id holds TEXT out of the fit, not of the errors.
//
// Least squares of the logarithm of predicted over published, over the rows of that software and accelerator, with a
// weak pull towards the start (the table's value, or the one given): a constant that the rows do not determine stays
// where it was. Shares stay below 1.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/plan/step_time.h"
#include "validation/measured_run.h"

using namespace octavo;
using nlohmann::json;

namespace {

struct Row {
  std::string id;
  MeasuredRun run;
  double seconds;
};

std::vector<Row> read_rows(const std::string& path, const std::string& software, const std::string& accelerator) {
  const json file = parse_json(read_text_file(path, path), path);
  std::vector<Row> rows;
  for (const json& item : file["cases"]) {
    if (item.value("kind", "") != "measurement" || item.value("complete_config", true) == false) continue;
    const auto found = measured_run(item["input"], file["models"], item.value("note", ""));
    if (std::holds_alternative<std::string>(found)) continue;
    const auto& run = std::get<MeasuredRun>(found);
    if (run.software != software || run.cluster.accelerator.name != accelerator) continue;
    const json& expect = item["expect"];
    const double seconds = expect.contains("step_s") && expect["step_s"].is_number()
                               ? expect["step_s"].get<double>()
                               : static_cast<double>(run.job.batch * run.job.sequence_length) /
                                     (expect["tokens_per_s_per_gpu"].get<double>() * run.cluster.world_size());
    rows.push_back({item["id"], run, seconds});
  }
  return rows;
}

double predict(const Row& row, const TimeRules& rules) {
  return TimeModel(row.run.model, row.run.job, row.run.cluster, rules).step(row.run.plan).total;
}

/// Constants vary as start * exp(x); shares as a logistic curve through their start.
struct Free {
  const TimeConstant* constant;
  double start;
  double at(double x) const {
    if (constant->unit != "share") return start * std::exp(x);
    const double odds = start / (1 - start) * std::exp(x);
    return odds / (1 + odds);
  }
};

std::vector<double> residuals(const std::vector<Row>& rows, TimeRules rules, const std::vector<Free>& free,
                              const std::vector<double>& x) {
  constexpr double kPull = 0.02;
  for (std::size_t i = 0; i < free.size(); ++i) rules.*free[i].constant->member = free[i].at(x[i]);
  std::vector<double> out;
  for (const Row& row : rows) {
    const double r = std::log(predict(row, rules) / row.seconds);
    out.push_back(std::abs(r) < 0.15 ? r : std::copysign(std::sqrt(0.15 * (2 * std::abs(r) - 0.15)), r));  // Huber
  }
  for (const double value : x) out.push_back(kPull * value);
  return out;
}

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

/// a x = b by Gauss elimination; a is positive definite.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) {
      const double f = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// Levenberg-Marquardt with differences.
std::vector<double> fit(const std::vector<Row>& rows, const TimeRules& rules, const std::vector<Free>& free) {
  const std::size_t n = free.size();
  std::vector<double> x(n, 0);
  std::vector<double> r = residuals(rows, rules, free, x);
  double damping = 1e-3;
  for (int round = 0; round < 200 && damping < 1e8; ++round) {
    std::vector<std::vector<double>> slopes;
    for (std::size_t i = 0; i < n; ++i) {
      constexpr double kStep = 1e-4;
      std::vector<double> moved = x;
      moved[i] += kStep;
      std::vector<double> slope = residuals(rows, rules, free, moved);
      for (std::size_t k = 0; k < slope.size(); ++k) slope[k] = (slope[k] - r[k]) / kStep;
      slopes.push_back(std::move(slope));
    }
    std::vector<std::vector<double>> normal(n, std::vector<double>(n, 0));
    std::vector<double> right(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < r.size(); ++k) normal[i][j] += slopes[i][k] * slopes[j][k];
      }
      for (std::size_t k = 0; k < r.size(); ++k) right[i] -= slopes[i][k] * r[k];
    }
    for (std::size_t i = 0; i < n; ++i) normal[i][i] += damping * (normal[i][i] + 1e-9);
    const std::vector<double> step = solve(normal, right);
    std::vector<double> moved = x;
    for (std::size_t i = 0; i < n; ++i) moved[i] += std::clamp(step[i], -1.0, 1.0);
    const std::vector<double> there = residuals(rows, rules, free, moved);
    if (sum_of_squares(there) < sum_of_squares(r)) {
      x = moved;
      r = there;
      damping /= 3;
    } else {
      damping *= 4;
    }
  }
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "calibrate_bench FILE SOFTWARE ACCELERATOR CONSTANT[=start] | -CONSTANT=value | ~TEXT ...\n";
    return 2;
  }
  const std::vector<Row> rows = read_rows(argv[1], argv[2], argv[3]);
  TimeRules rules = find_time_rules(argv[2], argv[3]).rules;
  std::vector<Row> fitted = rows;
  std::vector<Free> free;
  for (int i = 4; i < argc; ++i) {
    std::string word = argv[i];
    if (word.starts_with("~")) {
      std::erase_if(fitted, [&](const Row& row) { return row.id.find(word.substr(1)) != std::string::npos; });
      continue;
    }
    const bool fixed = word.starts_with("-");  // "-overlap=0.9": set, not fitted
    if (fixed) word.erase(0, 1);
    const std::string name = word.substr(0, word.find('='));
    for (const TimeConstant& constant : time_constants()) {
      if (constant.name != name) continue;
      if (word.size() > name.size()) rules.*constant.member = std::stod(word.substr(name.size() + 1));
      if (!fixed) free.push_back({&constant, rules.*constant.member});
    }
  }
  const std::vector<double> x = fit(fitted, rules, free);
  for (std::size_t i = 0; i < free.size(); ++i) rules.*free[i].constant->member = free[i].at(x[i]);
  double sum = 0;
  for (const Row& row : rows) {
    const StepTime step = TimeModel(row.run.model, row.run.job, row.run.cluster, rules).step(row.run.plan);
    const double error = step.total / row.seconds - 1;
    sum += std::abs(error);
    std::cout << fixed(100 * error, 1) << " %  " << row.id << "  " << fixed(row.seconds, 3) << " s, predicted "
              << fixed(step.total, 3) << ": matmul " << fixed(step.matmul, 3) << " attention "
              << fixed(step.attention, 3) << " memory " << fixed(step.memory_bound, 3) << " again "
              << fixed(step.recompute, 3) << " host " << fixed(step.host, 3) << " head " << fixed(step.head, 3)
              << " optimizer " << fixed(step.optimizer, 3) << " bubble " << fixed(step.bubble, 3) << " exposed "
              << fixed(step.exposed(), 3) << "\n";
  }
  std::cout << rows.size() << " rows, mean error " << fixed(100 * sum / static_cast<double>(rows.size()), 2) << " %\n";
  for (const TimeConstant& constant : time_constants()) {
    std::cout << "       ." << constant.name << " = " << rules.*constant.member << ",\n";
  }
  return 0;
}
