#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/run_captured.h"
#include "octavo/base/error.h"

using octavo::testing::Captured;
using octavo::testing::run_captured;
namespace fs = std::filesystem;

namespace {

constexpr const char* kModel = "tests/data/cases/qwen3";

/// A folder that is gone at the end.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("octavo-cli-" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

void check_refused(const std::vector<std::string>& arguments, const std::string& part) {
  const Captured result = run_captured(arguments);
  CAPTURE(result.err);
  CAPTURE(part);
  CHECK(result.code == 2);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("help and version are fine") {
  CHECK(run_captured({}).code == 0);
  CHECK(run_captured({"--help"}).out.find("Examples:") != std::string::npos);
  CHECK(run_captured({"train", "--help"}).out.find("--stash") != std::string::npos);
  const Captured version = run_captured({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.find("libtorch 2.") != std::string::npos);
  CHECK(version.out.find("threads") != std::string::npos);
}

TEST_CASE("wrong usage is one line and exit code 2") {
  Folder folder;
  check_refused({"trian"}, "trian");
  check_refused({"train"}, "--model is required");
  check_refused({"train", kModel}, "--data is required");
  check_refused({"train", "--model", kModel, "--data", folder / "missing.txt", "--out", folder / "m"}, "missing.txt");
  check_refused(
      {"train", "--model", kModel, "--data", "data/kjv-valid.txt", "--layout", "dat=2", "--out", folder / "m"}, "data");
  check_refused({"train", "--model", kModel, "--data", "data/kjv-valid.txt", "--steps", "0", "--out", folder / "m"},
                "--steps");
  check_refused({"train", "--model", kModel, "--data", "data/kjv-valid.txt", "--stash", "some", "--out", folder / "m"},
                "some");
  check_refused({"train", "--model", kModel, "--data", "data/kjv-valid.txt", "--dtype", "fp8", "--out", folder / "m"},
                "fp8");
  check_refused(
      {"train", "--model", kModel, "--data", "data/kjv-valid.txt", "--memory-limit", "lots", "--out", folder / "m"},
      "lots");
  check_refused({"train", "--model", kModel, "--data", "data/kjv-valid.txt", "--out", "tests"}, "tests");
  for (const char* option : {"--batch", "--seq-len", "--micro-batch", "--valid-every"}) {
    check_refused({"train", kModel, "--data", "data/kjv-valid.txt", option, "0", "--out", folder / "m"}, option);
  }
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--eps", "0", "--out", folder / "m"}, "--eps");
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--lr", "inf", "--out", folder / "m"}, "--lr");
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--min-lr=-5", "--out", folder / "m"}, "--min-lr");
  check_refused(
      {"train", kModel, "--data", "data/kjv-valid.txt", "--batch", "9223372036854775807", "--out", folder / "m"},
      "--batch");
  check_refused(
      {"train", kModel, "--data", "data/kjv-valid.txt", "--sample", "5", "--prompt", "", "--out", folder / "m"},
      "--prompt");
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--out", ""}, "empty");
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--out", "README.md/x"}, "README.md");
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--metrics", "README.md", "--out", folder / "m"},
                "JSON lines");
  check_refused({"train", kModel, "--data", "data/kjv-valid.txt", "--memory-limit", "0.5", "--out", folder / "m"},
                "0.5");
  check_refused({"verify", "--model", kModel, "--micro-batch=-1"}, "--micro-batch");
  check_refused({"eval", "--model", kModel, "--data", "data/kjv-valid.txt", "--threads-per-rank", "100000"}, "threads");
  check_refused({"verify", "--reference", kModel, "--steps", "9"}, "--steps");
  check_refused({"layout", kModel, "--rank", "2147483647"}, "rank");
  check_refused({"verify"}, "--reference");
  check_refused({"verify", "--model", kModel, "--dtype", "bf16"}, "bf16");
  check_refused({"eval", "--model", "nowhere", "--data", "data/kjv-valid.txt"}, "nowhere");
  check_refused({"layout", kModel, "--layout", "pipeline=2"}, "not built");
  check_refused({"layout", kModel, "--rank", "3"}, "rank");
}

TEST_CASE("training writes a folder that eval reads, and the same run twice is the same") {
  Folder folder;
  std::vector<std::string> losses;
  for (const char* name : {"one", "two"}) {
    const Captured result = run_captured({"train",
                                          kModel,
                                          "--data",
                                          "data/kjv-valid.txt",
                                          "--valid",
                                          "data/kjv-valid.txt",
                                          "--valid-sequences",
                                          "4",
                                          "--layout",
                                          "data=2:zero1",
                                          "--steps",
                                          "4",
                                          "--batch",
                                          "3",
                                          "--seq-len",
                                          "32",
                                          "--micro-batch",
                                          "1",
                                          "--sample",
                                          "5",
                                          "--metrics",
                                          folder / (std::string(name) + ".jsonl"),
                                          "--out",
                                          folder / name,
                                          "--json"});
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    const auto summary = nlohmann::json::parse(result.out);
    CHECK(summary["losses"].size() == 4);
    CHECK(summary["losses"][3].get<double>() < summary["losses"][0].get<double>());
    CHECK(summary["ranks"].size() == 2);
    CHECK(summary["ranks"][1]["peak_bytes"].get<long>() > 0);
    losses.push_back(summary["losses"].dump());
  }
  CHECK(losses[0] == losses[1]);
  std::ifstream one(folder / "one/model.safetensors", std::ios::binary),
      two(folder / "two/model.safetensors", std::ios::binary);
  const std::string bytes_one((std::istreambuf_iterator<char>(one)), {}),
      bytes_two((std::istreambuf_iterator<char>(two)), {});
  CHECK(bytes_one.size() > 1000);
  CHECK(bytes_one == bytes_two);
  std::ifstream metrics(folder / "one.jsonl");
  CHECK(std::count(std::istreambuf_iterator<char>(metrics), {}, '\n') == 4);

  const Captured whole = run_captured(
      {"eval", folder / "one", "--data", "data/kjv-valid.txt", "--seq-len", "32", "--sequences", "5", "--json"});
  const Captured spread = run_captured({"eval", folder / "one", "--data", "data/kjv-valid.txt", "--seq-len", "32",
                                        "--sequences", "5", "--layout", "data=3", "--json"});
  REQUIRE(whole.code == 0);
  REQUIRE(spread.code == 0);
  CHECK(nlohmann::json::parse(whole.out)["loss"].get<double>() ==
        doctest::Approx(nlohmann::json::parse(spread.out)["loss"].get<double>()).epsilon(1e-6));
  CHECK(nlohmann::json::parse(whole.out)["tokens"] == 160);
}

TEST_CASE("fewer sequences than ranks are legal, and the idle rank is named") {
  Folder folder;
  const Captured result = run_captured({"train", kModel, "--data", "data/kjv-valid.txt", "--layout", "data=3",
                                        "--steps", "1", "--batch", "2", "--seq-len", "16", "--out", folder / "m"});
  CHECK(result.code == 0);
  CHECK(result.out.find("rank 2 was idle") != std::string::npos);
}

TEST_CASE("a folded run says what it moves instead of what, and moves what is predicted") {
  Folder folder;
  std::vector<std::string> arguments = {"train",     kModel,
                                        "--data",    "data/kjv-valid.txt",
                                        "--valid",   "data/kjv-valid.txt",
                                        "--layout",  "fold=2",
                                        "--steps",   "2",
                                        "--batch",   "1",
                                        "--seq-len", "40",
                                        "--sample",  "3",
                                        "--out",     folder / "m"};
  const Captured text = run_captured(arguments);
  CAPTURE(text.out);
  CHECK(text.code == 0);
  CHECK(text.out.find("fold=2:auto at 40 positions: ") != std::string::npos);
  CHECK(text.out.find("as the layout's formulas predict") != std::string::npos);
  CHECK(text.out.find("NOT as") == std::string::npos);
  arguments.emplace_back("--json");
  const nlohmann::json report = nlohmann::json::parse(run_captured(arguments).out);
  CHECK(report["traffic_as_predicted"] == true);
  CHECK(report["fold"]["positions"] == 40);
  CHECK(report["fold"]["blocks"].size() == 4);
}

TEST_CASE("a layout says from how many positions on weights move") {
  const Captured text = run_captured({"layout", kModel, "--layout", "fold=4"});
  CHECK(text.code == 0);
  CHECK(text.out.find("fold=4:auto: weights for embedding from ") != std::string::npos);
  const nlohmann::json report =
      nlohmann::json::parse(run_captured({"layout", kModel, "--layout", "fold=5:activations", "--json"}).out);
  REQUIRE(report["fold"].size() >= 1);
  CHECK(report["fold"][0].get<std::string>().find("over fold=5 by activations") != std::string::npos);
}

TEST_CASE("a memory limit that is met ends the run with exit code 1 and writes nothing") {
  Folder folder;
  const Captured result = run_captured({"train", kModel, "--data", "data/kjv-valid.txt", "--layout", "data=2",
                                        "--memory-limit", "2MB", "--out", folder / "m"});
  CHECK(result.code == 1);
  CHECK(result.err.find("[memory]") != std::string::npos);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_FALSE(fs::exists(folder / "m"));
}

TEST_CASE("verify proves layouts and stored numbers, and its exit code says so") {
  const Captured fine =
      run_captured({"verify", "--model", kModel, "--layout", "data=2:zero1", "--seq-len", "12", "--batch", "1"});
  CHECK(fine.code == 0);
  CHECK(fine.out.find("rank 1 had none") != std::string::npos);
  const Captured reference =
      run_captured({"verify", "--reference", "tests/data/cases/llama-gqa-sharded", "--layout", "data=2"});
  CHECK(reference.code == 0);

  // A model whose weights are not those of the stored numbers.
  Folder folder;
  for (const auto& entry : fs::directory_iterator("tests/data/cases/qwen3")) fs::copy(entry, folder.path);
  std::fstream weights(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-2, std::ios::end);
  weights.write("\x10\x40", 2);
  weights.close();
  const Captured changed = run_captured({"verify", "--reference", folder.path.string(), "--json"});
  CHECK(changed.code == 1);
  CHECK(nlohmann::json::parse(changed.out)["passed"] == false);
}

TEST_CASE("options stand in a TOML file under the same names, and the command line wins") {
  Folder folder;
  std::ofstream(folder / "run.toml") << "model = \"" << kModel
                                     << "\"\nlayout = \"data=2\"\nseq-len = 8\nlr = 0.01\njson = true\n";
  const Captured result = run_captured({"verify", "--config", folder / "run.toml", "--batch", "2"});
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK(nlohmann::json::parse(result.out)["passed"] == true);
  const Captured overridden =
      run_captured({"verify", "--config", folder / "run.toml", "--layout", "data=3", "--batch", "2"});
  CHECK(nlohmann::json::parse(overridden.out)["what"].get<std::string>().find("data=3") != std::string::npos);
  std::ofstream(folder / "bad.toml") << "layuot = \"data=2\"\n";
  check_refused({"verify", "--config", folder / "bad.toml"}, "layout");
  std::ofstream(folder / "syntax.toml") << "layout = \n";
  check_refused({"verify", "--config", folder / "syntax.toml"}, "syntax.toml");
  check_refused({"verify", "--config", folder / "none.toml"}, "none.toml");
}

TEST_CASE("stored numbers of another size are refused, not compared") {
  Folder folder;
  for (const auto& entry : fs::directory_iterator("tests/data/cases/qwen3")) fs::copy(entry, folder.path);
  fs::copy_file("tests/data/cases/llama-mha/reference.safetensors", folder / "reference.safetensors",
                fs::copy_options::overwrite_existing);
  check_refused({"verify", "--reference", folder.path.string()}, "another model");
}

TEST_CASE("a micro-batch larger than any batch is all of it") {
  Folder folder;
  const Captured result = run_captured(
      {"verify", "--model", kModel, "--layout", "data=2", "--micro-batch", "9223372036854775807", "--seq-len", "8"});
  CAPTURE(result.err);
  CHECK(result.code == 0);
}

TEST_CASE("the tokenizer goes along with the model that was trained from it") {
  Folder folder;
  const std::string from = folder / "from";
  fs::create_directories(from);
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy(fs::path(kModel) / name, fs::path(from) / name);
  std::ofstream(fs::path(from) / "tokenizer.json") << "{}";
  const Captured result = run_captured({"train", from, "--data", "data/kjv-valid.txt", "--steps", "1", "--batch", "1",
                                        "--seq-len", "8", "--out", folder / "to"});
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK(fs::exists(folder / "to/tokenizer.json"));
}

TEST_CASE("sizes of memory are read with their units") {
  using octavo::cli::parse_bytes;
  CHECK(parse_bytes("2GB", "x") == 2000000000);
  CHECK(parse_bytes("1.5 MB", "x") == 1500000);
  CHECK(parse_bytes("64KiB", "x") == 65536);
  CHECK(parse_bytes("123", "x") == 123);
  for (const char* bad : {"", "GB", "-1GB", "0", "1e30", "2XB", "nan"})
    CHECK_THROWS_AS(parse_bytes(bad, "x"), octavo::UsageError);
}
