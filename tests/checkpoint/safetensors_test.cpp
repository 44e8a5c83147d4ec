#include "octavo/checkpoint/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "checkpoint/temporary_folder.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

using namespace octavo;

namespace {

StoredTensor declare(std::string name, StorageType type, std::vector<std::int64_t> shape) {
  return {.name = std::move(name), .type = type, .shape = std::move(shape)};
}

std::vector<float> ramp(std::size_t count, float first = 0.5f) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// A file from its header's text and its data.
std::string file_text(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i) text[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return text + header + data;
}

std::string complaint(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "t.safetensors";
  write_bytes(file, bytes);
  try {
    SafetensorsFile opened(file);
    return "";
  } catch (const UsageError& error) {
    const std::string message = error.what();
    CHECK(message.find(file.string()) != message.npos);
    CHECK(message.find('\n') == message.npos);
    return message;
  }
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("what is written is read back, whatever the pieces it was given in") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "t.safetensors";
  const std::vector<float> matrix = ramp(6000), vector = ramp(5, -2.0f), scalar = {3.25f};
  {
    SafetensorsWriter writer(
        file,
        {declare("double", StorageType::F64, {5}), declare("matrix", StorageType::F32, {60, 100}),
         declare("empty", StorageType::F32, {0, 7}), declare("a \"scalar\" \u00fc", StorageType::F32, {}),
         declare("half", StorageType::BF16, {5}), declare("last", StorageType::BF16, {0})},
        {{"format", "pt"}, {"step", "3"}});
    writer.append(std::span<const float>(vector));
    for (std::size_t first = 0; first < matrix.size(); first += 700) {
      writer.append(std::span<const float>(matrix).subspan(first, std::min<std::size_t>(700, matrix.size() - first)));
    }
    writer.append(std::span<const float>(scalar));
    const std::vector<double> doubles(vector.begin(), vector.end());
    writer.append(std::span<const double>(doubles));
    CHECK(!std::filesystem::exists(file));
    writer.commit();
  }
  const SafetensorsFile read(file);
  CHECK(read.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"step", "3"}});
  REQUIRE(read.tensors().size() == 6);
  std::vector<float> values(6000);
  read.read_as_float("matrix", 0, values);
  CHECK(values == matrix);
  std::vector<float> part(3);
  read.read_as_float("matrix", 5997, part);
  CHECK(part == std::vector<float>(matrix.end() - 3, matrix.end()));
  std::vector<double> doubles(5);
  for (const char* name : {"double", "half"}) {  // these values are exact in bfloat16
    read.read_as_double(name, 0, doubles);
    CHECK(doubles == std::vector<double>(vector.begin(), vector.end()));
  }
  read.read_as_float("a \"scalar\" \u00fc", 0, std::span(values).first(1));
  CHECK(values[0] == 3.25f);
  CHECK(read.find("empty")->shape == std::vector<std::int64_t>{0, 7});
  CHECK(read.find("empty")->num_elements() == 0);
  CHECK(read.find("missing") == nullptr);
  CHECK(std::filesystem::file_size(file) % 2 == 0);
  CHECK(file_bytes(file)[0] % 8 == 0);  // the header ends on a multiple of 8
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("a writer that does not commit leaves nothing, and what was there stays") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "t.safetensors";
  write_bytes(file, "old");
  {
    SafetensorsWriter writer(file, {declare("a", StorageType::F32, {4})});
    writer.append(std::span<const float>(ramp(2)));
    CHECK_THROWS_AS(writer.commit(), InternalError);
    CHECK_THROWS_AS(writer.append(std::span<const float>(ramp(3))), InternalError);
  }
  CHECK(file_bytes(file) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("a writer refuses declarations that it cannot keep") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "t.safetensors";
  const StoredTensor a = declare("a", StorageType::F32, {4});
  CHECK_THROWS_AS(SafetensorsWriter(file, {a, a}), InternalError);
  CHECK_THROWS_AS(SafetensorsWriter(file, {declare("a", StorageType::I32, {4})}), InternalError);
  CHECK_THROWS_AS(SafetensorsWriter(file, {declare("a", StorageType::F32, {-4})}), InternalError);
  CHECK_THROWS_AS(SafetensorsWriter(file, {declare("b", StorageType::BF16, {3}), a}), InternalError);
  CHECK_THROWS_AS(SafetensorsWriter(folder.path() / "no" / "t.safetensors", {a}), UsageError);
  SafetensorsWriter writer(file, {a});
  writer.append(std::span<const float>(ramp(4)));
  CHECK_THROWS_AS(writer.append(std::span<const float>(ramp(1))), InternalError);
}

TEST_CASE("ranges and names that a file does not have are our own bug") {
  const SafetensorsFile file("tests/data/bad/good-llama/model.safetensors");
  std::vector<float> out(8);
  CHECK_NOTHROW(file.read_as_float("model.norm.weight", 0, out));
  CHECK_NOTHROW(file.read_as_float("model.norm.weight", 8, std::span<float>()));
  CHECK_THROWS_AS(file.read_as_float("model.norm.weight", 1, out), InternalError);
  CHECK_THROWS_AS(file.read_as_float("model.norm.weight", -1, out), InternalError);
  CHECK_THROWS_AS(file.read_as_float("model.norm.weight", INT64_MAX, out), InternalError);
  CHECK_THROWS_AS(file.read_as_float("model.nrm.weight", 0, out), InternalError);
}

TEST_CASE("integer tensors are listed but not read as weights") {
  const SafetensorsFile file("tests/data/bad/tensor-integer-dtype/model.safetensors");
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  REQUIRE(file.find(name) != nullptr);
  CHECK(file.find(name)->type == StorageType::I32);
  CHECK(file.bytes(*file.find(name)).size() == 512);
  std::vector<float> out(1);
  CHECK_THROWS_AS(file.read_as_float(name, 0, out), UsageError);
}

TEST_CASE("tensors are listed in the order of their data, not of the header") {
  const SafetensorsFile file("tests/data/bad/good-metadata-and-unsorted/model.safetensors");
  Bytes end = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    CHECK(tensor.begin == end);
    end = tensor.end;
  }
  CHECK(file.metadata().at("note") == "data_offsets");
}

TEST_CASE("headers that break a rule of the format are refused with the rule") {
  const auto entry = [](const std::string& rest) { return file_text("{\"a\":{" + rest + "}}", std::string(8, '\0')); };
  CHECK(complaint(file_text("{}", "")) == "");
  CHECK(complaint(file_text("{}   ", "")) == "");
  CHECK(complaint(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])")) == "");
  CHECK(complaint(entry(R"("dtype":"F4","shape":[16],"data_offsets":[0,8])")) == "");
  CHECK(holds(complaint(entry(R"("dtype":"F4","shape":[15],"data_offsets":[0,8])")), "60/8"));
  CHECK(holds(complaint(file_text(" {}", "")), "begin with {"));
  CHECK(holds(complaint(file_text("{}x", "")), "column 3"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","shape":[2])")), "data_offsets"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","data_offsets":[0,8])")), "shape"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","shape":2,"data_offsets":[0,8])")), "shape"));
  CHECK(holds(complaint(entry(R"("dtype":7,"shape":[2],"data_offsets":[0,8])")), "dtype"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"stride":[1])")), "stride"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])")), "shape"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","shape":[0,-1],"data_offsets":[0,0])")), "negative"));
  CHECK(holds(complaint(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8.0])")), "8.0"));
  CHECK(holds(complaint(file_text(R"({"a":[]})", "")), "object"));
  CHECK(holds(complaint(file_text(R"({"__metadata__":{"a":1}})", "")), "__metadata__"));
  CHECK(complaint(file_text(
            R"({"a":{"dtype":"F32","shape":[0,9007199254740992,9007199254740992],"data_offsets":[0,0]}})", "")) == "");
}

TEST_CASE("what is no regular file is refused") {
  CHECK_THROWS_AS(SafetensorsFile("tests/data"), UsageError);
  CHECK_THROWS_AS(SafetensorsFile("tests/data/no_such_file"), UsageError);
  CHECK_THROWS_AS(SafetensorsFile("/dev/null"), UsageError);
}
