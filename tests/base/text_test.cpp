#include "octavo/base/text.h"

#include <doctest/doctest.h>

#include <limits>

using namespace octavo;

TEST_CASE("cat writes its arguments one after another") {
  CHECK(cat("rank ", 3, ": ", 2.5, std::string(" s")) == "rank 3: 2.5 s");
  CHECK(cat() == "");
}

TEST_CASE("fixed keeps exactly the asked digits") {
  CHECK(fixed(1.25, 1) == "1.2");
  CHECK(fixed(-0.5, 3) == "-0.500");
  CHECK(fixed(1e20, 0) == "100000000000000000000");
}

TEST_CASE("with_commas groups thousands, also below zero and at the ends of the range") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1234567) == "1,234,567");
  CHECK(with_commas(-123456) == "-123,456");
  CHECK(with_commas(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
}

TEST_CASE("split keeps empty parts and join puts them back") {
  const std::string text = ",a,,bc,";
  const std::vector<std::string> parts = split(text, ',');
  CHECK(parts == std::vector<std::string>{"", "a", "", "bc", ""});
  CHECK(join(parts, ",") == text);
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(join({}, ", ") == "");
}

TEST_CASE("nearest finds a misspelt word and stays silent when nothing is close") {
  const std::vector<std::string> names = {"hidden_size", "head_dim", "vocab_size"};
  CHECK(nearest("hiden_size", names) == "hidden_size");
  CHECK(nearest("headdim", names) == "head_dim");
  CHECK(nearest("optimizer", names) == "");
  CHECK(nearest("", names) == "");
  CHECK(nearest("x", {}) == "");
}

TEST_CASE("text in quotes stays on one line whatever it holds") {
  CHECK(in_quotes("a b") == "\"a b\"");
  CHECK(in_quotes("a\nb\x1b[0m\x7f") == "\"a\\x0ab\\x1b[0m\\x7f\"");
  CHECK(in_quotes("gr\u00fc\u00df\u4f60\U0001f600") == "\"gr\u00fc\u00df\u4f60\U0001f600\"");
  CHECK(in_quotes("\u2028") == "\"\\xe2\\x80\\xa8\"");
  CHECK(in_quotes(std::string_view("\0", 1)) == "\"\\x00\"");
}

TEST_CASE("text in quotes escapes bytes that are not UTF-8") {
  CHECK(in_quotes("\xff\xfe") == "\"\\xff\\xfe\"");
  CHECK(in_quotes("\xc3") == "\"\\xc3\"");                    // cut short
  CHECK(in_quotes("\xc0\xaf") == "\"\\xc0\\xaf\"");           // overlong
  CHECK(in_quotes("\xed\xa0\x80") == "\"\\xed\\xa0\\x80\"");  // surrogate
}

TEST_CASE("text in quotes is cut at its limit") {
  CHECK(in_quotes("abcdef", 3) == "\"abc...\"");
  CHECK(in_quotes("abc", 3) == "\"abc\"");
}
