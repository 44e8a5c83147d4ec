#include "cli/core/validation.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

using namespace octavo;
using namespace octavo::cli;
using nlohmann::json;

namespace {

const char kGolden[] = "tests/data/golden";

/// A folder of its own, removed at the end.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / cat("octavo-validation-", ::getpid())) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const json& value) const { std::ofstream(path / name) << value.dump(); }
  std::filesystem::path path;
};

json golden(const std::string& name) {
  const std::string path = cat(kGolden, "/", name);
  return parse_json(read_text_file(path, path), path);
}

}  // namespace

TEST_CASE("docs/validation.md is what validating the golden files prints") {
  const std::string text = validation_text(validate_folder(kGolden));
  if (std::getenv("OCTAVO_WRITE_DOCS") != nullptr) std::ofstream("docs/validation.md") << text;
  const bool same = text == read_text_file("docs/validation.md", "[test]");
  CHECK_MESSAGE(same, "run the test with OCTAVO_WRITE_DOCS=1 from the source folder to write docs/validation.md anew");
}

TEST_CASE("every golden file is within its limits") {
  for (const FileReport& report : validate_folder(kGolden)) {
    CAPTURE(report.name);
    for (const std::string& failure : report.failures) FAIL_CHECK(failure);
  }
}

TEST_CASE("limited sources are within their limits and better than one efficiency per accelerator") {
  int limited = 0;
  for (const FileReport& report : validate_folder(kGolden)) {
    if (!report.time) continue;
    for (const SourceError& source : report.time->sources) {
      CAPTURE(source.source);
      CHECK(source.mean < source.baseline_mean);
      limited += source.limit.has_value();
    }
    for (const RankingResult& ranking : report.time->rankings) {
      CAPTURE(ranking.id);
      if (!ranking.is_used()) continue;
      CHECK(ranking.best_is_right);
      CHECK(ranking.tau >= 0.8);
    }
  }
  CHECK(limited == 5);
}

TEST_CASE("published figures that are not met fail and are named") {
  json times = golden("measured_step_times.json");
  for (json& item : times["cases"]) {
    if (item["expect"].contains("step_s") && item["expect"]["step_s"].is_number()) {
      item["expect"]["step_s"] = 2 * item["expect"]["step_s"].get<double>();
    }
    if (item["expect"].contains("tokens_per_s_per_gpu") && item["expect"]["tokens_per_s_per_gpu"].is_number()) {
      item["expect"]["tokens_per_s_per_gpu"] = 0.5 * item["expect"]["tokens_per_s_per_gpu"].get<double>();
    }
  }
  const Folder folder;
  folder.write("times.json", times);
  const auto reports = validate_folder(folder.path.string());
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].failures.size() >= 5);
  CHECK_THROWS_AS(check_within_limits(reports), CheckFailed);
  CHECK_NOTHROW(check_within_limits({}));
  CHECK(validation_json(reports)["files"][0]["beyond_limit"].size() == reports[0].failures.size());
}

TEST_CASE("a file of another kind is listed and not compared") {
  const Folder folder;
  folder.write("a.json", {{"dataset", "weather"}, {"cases", json::array({1})}});
  folder.write("b.json", json::array());
  const auto reports = validate_folder(folder.path.string());
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].identities.left_out.size() == 1);
  CHECK(validation_text(reports).find("a case without id") != std::string::npos);
  CHECK(!reports[1].why.empty());
}

TEST_CASE("what cannot be checked is left out with its reason and is never taken for right") {
  const Folder folder;
  json memory = golden("memory_measured.json");
  for (json& item : memory["cases"]) {
    for (auto& entry : item["expect"].items()) {
      if (entry.value().is_number()) entry.value() = 0;
    }
  }
  folder.write("file.json", memory);
  const auto of_memory = validate_folder(folder.path.string());
  for (const ValidationRow& row : of_memory[0].rows) {
    CAPTURE(row.id);
    if (row.is_used()) CHECK(row.published > 0);
  }
  json times = golden("measured_step_times.json");
  for (json& item : times["cases"]) {
    if (item["input"].is_object()) item["input"]["tp"] = 0;
  }
  folder.write("file.json", times);
  const auto of_times = validate_folder(folder.path.string());
  for (const ValidationRow& row : of_times[0].time->rows) CHECK(!row.is_used());

  json identities = golden("activation_memory.json");
  const std::size_t all = identities["cases"].size();
  identities["cases"][0]["expect"] = json::object();
  identities["cases"][1]["tolerance_rel"] = 1e300;
  identities["cases"].erase(2);
  folder.write("file.json", identities);
  const FileReport report = validate_folder(folder.path.string())[0];
  CHECK(report.identities.left_out.size() == 2);
  CHECK(report.identities.cases == static_cast<int>(all) - 3);
  CHECK(report.note.find("n_cases") != std::string::npos);
}

TEST_CASE("an error in a golden file names the file") {
  const Folder folder;
  folder.write("empty.json", {{"dataset", "hardware"}, {"cases", json::array()}});
  try {
    validate_folder(folder.path.string());
    FAIL("taken");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()).find("empty.json: a golden file has a list") != std::string::npos);
  }
}

TEST_CASE("a folder that is none or empty or holds what is no JSON is a usage error") {
  const Folder folder;
  CHECK_THROWS_AS(validate_folder("tests/data/no-such-folder"), UsageError);
  CHECK_THROWS_AS(validate_folder(folder.path.string()), UsageError);
  std::ofstream(folder.path / "bad.json") << "{";
  CHECK_THROWS_AS(validate_folder(folder.path.string()), UsageError);
}

TEST_CASE("values of wrong types in a golden file are usage errors or reasons and never a crash") {
  const Folder folder;
  for (const char* name : {"measured_step_times.json", "memory_measured.json", "hardware.json"}) {
    json file = golden(name);
    json few = json::array();  // every seventh
    for (std::size_t i = 0; i < file["cases"].size(); i += 7) few.push_back(file["cases"][i]);
    file["cases"] = few;
    for (const json& wrong : {json(-3), json("x"), json(), json::array(), json::object(), json(1e300)}) {
      for (const char* key : {"id", "kind", "input", "expect", "tolerance_rel", "source", "group", "note"}) {
        json changed = file;
        for (json& item : changed["cases"]) item[key] = wrong;
        folder.write("changed.json", changed);
        try {
          validate_folder(folder.path.string());
        } catch (const UsageError&) {
        }
      }
      json changed = file;
      for (json& item : changed["cases"]) {
        for (auto& entry : item["input"].items()) entry.value() = wrong;
      }
      folder.write("changed.json", changed);
      try {
        validate_folder(folder.path.string());
      } catch (const UsageError&) {
      }
    }
  }
}
