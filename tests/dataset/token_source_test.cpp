#include "octavo/dataset/token_source.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <numeric>

#include "dataset/temp_file.h"
#include "octavo/base/error.h"

using namespace octavo;
using namespace std::string_view_literals;

namespace {

using Ids = std::vector<std::int64_t>;

Ids all_tokens(const TokenSource& source) {
  Ids ids(static_cast<std::size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

// The message of the UsageError that opening and reading the content gives; empty if there is none.
std::string refusal(std::string_view content, const std::string& ending) {
  const TempFile file(content, ending);
  try {
    all_tokens(TokenSource(file.path()));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

void check_refused(const std::string& message, std::string_view reason) {
  CHECK_MESSAGE(message.find(reason) != std::string::npos, message);
  CHECK(message.starts_with("[dataset] "));
  CHECK(message.find('\n') == std::string::npos);
}

std::string open_error(const std::filesystem::path& path) {
  try {
    const TokenSource source(path);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a text file is read byte by byte") {
  const TempFile file(std::string("ab\xFF\0z", 5), ".txt");
  const TokenSource source(file.path());
  CHECK(source.size() == 5);
  CHECK(source.vocab_size() == 256);
  CHECK(source.name() == file.path().string());
  CHECK(all_tokens(source) == Ids{'a', 'b', 255, 0, 'z'});
  CHECK(TokenSource(TempFile("OCTVTOK1", ".md").path()).size() == 8);
}

TEST_CASE("token files hold ids of two or four bytes") {
  const TempFile narrow(token_file<std::uint16_t>(50000, {0, 49999, 7}), ".bin");
  const TokenSource narrow_source(narrow.path());
  CHECK(narrow_source.vocab_size() == 50000);
  CHECK(all_tokens(narrow_source) == Ids{0, 49999, 7});
  const TempFile wide(token_file<std::uint32_t>(4000000000u, {3999999999, 1}), ".bin");
  const TokenSource wide_source(wide.path());
  CHECK(wide_source.vocab_size() == 4000000000);
  CHECK(all_tokens(wide_source) == Ids{3999999999, 1});
}

TEST_CASE("NumPy arrays of every id type and format version are read, their vocabulary is found") {
  const Ids ids{5, 0, 2, 65535};
  const std::string tail = "', 'fortran_order': False, 'shape': (4,), }";
  const TempFile u2(npy_file(1, "{'descr': '<u2" + tail, ids_as<std::uint16_t>(ids)), ".npy");
  const TempFile u4(npy_file(2, "{'descr': '<u4" + tail, ids_as<std::uint32_t>(ids)), ".npy");
  const TempFile i4(npy_file(3, "{'descr': '<i4" + tail, ids_as<std::int32_t>(ids)), ".npy");
  const TempFile i8(npy_file(1, "{'descr': '<i8" + tail, ids_as<std::int64_t>(ids)), ".npy");
  for (const TempFile* file : {&u2, &u4, &i4, &i8}) {
    const TokenSource source(file->path());
    CHECK(source.vocab_size() == 65536);
    CHECK(all_tokens(source) == ids);
  }
  const TempFile other_order(npy_file(1, "{\"shape\":(1,),'descr':'<u2','fortran_order':False}", "\x03\x00"sv), ".npy");
  CHECK(all_tokens(TokenSource(other_order.path())) == Ids{3});
}

TEST_CASE("any span of the file can be read, also from a moved source") {
  Ids ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  const TempFile file(token_file<std::uint16_t>(1000, ids), ".bin");
  TokenSource first(file.path());
  const TokenSource source(std::move(first));
  Ids part(10);
  source.read(990, part);
  CHECK(part == Ids(ids.end() - 10, ids.end()));
  source.read(1000, std::span(part).first(0));
  CHECK_THROWS_AS(source.read(991, part), InternalError);
  CHECK_THROWS_AS(source.read(-1, part), InternalError);
}

TEST_CASE("what is not a readable, regular, non-empty file is refused") {
  check_refused(open_error("no/such/tokens.bin"), "no/such/tokens.bin: No such file");
  check_refused(open_error(std::filesystem::temp_directory_path()), "is a directory");
  check_refused(refusal("", ".txt"), "is empty");
  const TempFile pipe("", ".txt");
  std::filesystem::remove(pipe.path());
  REQUIRE(::mkfifo(pipe.path().c_str(), 0600) == 0);
  check_refused(open_error(pipe.path()), "no regular file");
  if (::geteuid() != 0) {  // root may read everything
    const TempFile secret("abc", ".txt");
    std::filesystem::permissions(secret.path(), std::filesystem::perms::none);
    check_refused(open_error(secret.path()), "Permission denied");
  }
}

TEST_CASE("token files whose header or length is wrong are refused") {
  const std::string good = token_file<std::uint16_t>(10, {1, 2, 3});
  CHECK(refusal(good, ".bin").empty());
  check_refused(refusal("In the beginning", ".bin"), "no token file");
  check_refused(refusal(good.substr(0, 20), ".bin"), "is truncated: a token file's header has 24 bytes");
  check_refused(refusal(good.substr(0, good.size() - 1), ".bin"), "is truncated: its header says: 3 ids of 2 bytes");
  check_refused(refusal(good + "x", ".bin"), "is longer than its header says");
  std::string changed = good;
  changed[8] = 3;
  check_refused(refusal(changed, ".bin"), "an id 3 bytes");
  changed = good;
  changed[16] = 0;
  check_refused(refusal(changed, ".bin"), "holds no tokens");
  changed = good;
  changed.replace(16, 8, 8, '\xFF');
  check_refused(refusal(changed, ".bin"), "is truncated");
  check_refused(refusal(token_file<std::uint16_t>(0, {1}), ".bin"), "a vocabulary of 0");
}

TEST_CASE("an id at or above the vocabulary size is refused with its place") {
  check_refused(refusal(token_file<std::uint32_t>(10, {1, 2, 10, 3}), ".bin"),
                "id 10 at place 2 is not below the file's vocabulary size 10");
}

TEST_CASE("NumPy files that are no one-dimensional array of ids are refused") {
  const std::string two = ids_as<std::int32_t>({1, 2});
  const auto npy = [&](const std::string& dictionary) { return refusal(npy_file(1, dictionary, two), ".npy"); };
  CHECK(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }").empty());
  check_refused(npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }"), "dtype '>i4'");
  check_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), "dtype '<f4'");
  check_refused(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2,), }"), "Fortran order");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }"), "2 dimensions");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (), }"), "0 dimensions");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (0,), }"), "holds no tokens");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }"), "is truncated");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }"), "is longer than");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "does not read");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False}"), "does not read");
  check_refused(npy("{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}"), "does not read");
  check_refused(npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,)}"), "does not read");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}"), "does not read");
  check_refused(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,)} 1"), "does not read");
  check_refused(refusal("PK\x03\x04", ".npy"), "no NumPy array file");
  check_refused(refusal("\x93NUMPY\x01", ".npy"), "is truncated");
  check_refused(refusal(npy_file(4, "{}", ""), ".npy"), "format version 4.0");
  check_refused(refusal(npy_file(1, "{}", "").substr(0, 40), ".npy"), "do not hold its .npy header");
}

TEST_CASE("ids that no vocabulary can hold are refused with their place") {
  const std::string head = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }";
  check_refused(refusal(npy_file(1, head, ids_as<std::int64_t>({1, -100, 2})), ".npy"), "id -100 at place 1");
  check_refused(refusal(npy_file(1, head, ids_as<std::int64_t>({1, 2, 1ll << 31})), ".npy"),
                "id 2147483648 at place 2");
}
