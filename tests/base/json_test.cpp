#include "octavo/base/json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

using namespace octavo;

namespace {

// The message of the UsageError that `text` provokes; "" if it parses. Any other exception escapes and fails the test.
std::string complaint(std::string_view text) {
  try {
    parse_json(text, "[base] t.json");
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("valid JSON is read as it stands") {
  const nlohmann::json value = parse_json(R"( {"a": [1, -2, 2.5, true, null, "\u00fc"], "b": {"a": {}}} )", "t");
  CHECK(value == nlohmann::json::parse(R"({"a": [1, -2, 2.5, true, null, "ü"], "b": {"a": {}}})"));
  CHECK(parse_json("3", "t") == 3);
}

TEST_CASE("a syntax error tells line, column and what was expected") {
  const std::string message = complaint("{\n  \"a\": 1\n  \"b\": 2\n}");
  CHECK(holds(message, "[base] t.json: line 3, column"));
  CHECK(holds(message, "expected"));
  CHECK(!holds(message, "exception"));
}

TEST_CASE("a key that appears twice in one object is an error that names it") {
  CHECK(
      holds(complaint("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 1}}"), "line 2, column 18: the key \"c\" appears twice"));
  CHECK(complaint(R"({"a": {"x": 1}, "b": {"x": 1}})") == "");
}

TEST_CASE("hostile nesting is refused, not followed") {
  CHECK(complaint(std::string(64, '[') + std::string(64, ']')) == "");
  CHECK(holds(complaint(std::string(65, '[') + std::string(65, ']')), "levels of nesting"));
  CHECK(holds(complaint(std::string(5'000'000, '[')), "levels of nesting"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(holds(complaint(objects), "levels of nesting"));
}

TEST_CASE("what is not JSON is refused on one line") {
  const std::string_view samples[] = {"",
                                      " \n",
                                      "{",
                                      "[1,]",
                                      "{\"a\":}",
                                      "nan",
                                      "NaN",
                                      "[Infinity]",
                                      "01",
                                      "+1",
                                      "'a'",
                                      "{} {}",
                                      "[1] x",
                                      "{\"a\" 1}",
                                      "\"\xff\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\\ud800\"",
                                      "\"a\nb\"",
                                      "\xff",
                                      "1e999",
                                      "/* c */ {}",
                                      "{\"a\":1}\n\n\n}",
                                      std::string_view("{}\0{", 4),
                                      std::string_view("\"\0\"", 3)};
  for (const std::string_view sample : samples) {
    CAPTURE(sample);
    const std::string message = complaint(sample);
    CHECK(message.substr(0, 14) == "[base] t.json:");
    CHECK(!holds(message, "\n"));
    CHECK(message ==
          in_quotes(message, 10'000).substr(1, message.size()));  // holds no control characters or stray bytes
  }
}

TEST_CASE("an object gives its values by type") {
  const nlohmann::json value = parse_json(R"({"n": 3, "x": 2.5, "t": "w", "b": false, "none": null})", "t");
  JsonObject object(value, "[base] t.json");
  CHECK(object.integer("n") == 3);
  CHECK(object.number("n") == 3.0);
  CHECK(object.number("x") == 2.5);
  CHECK(object.text("t") == "w");
  CHECK(object.find_boolean("b") == false);
  CHECK(object.find_integer("none") == std::nullopt);
  CHECK(object.find_text("absent") == std::nullopt);
  CHECK(object.find("none") == nullptr);
  CHECK_NOTHROW(object.finish());
}

TEST_CASE("an object names key and value when the type is another") {
  const nlohmann::json value = parse_json(R"({"n": "8", "h": 1.5, "big": 18446744073709551615, "b": 0})", "t");
  JsonObject object(value, "[base] t.json");
  CHECK_THROWS_WITH_AS(object.integer("n"), "[base] t.json: n is \"8\"; it must be an integer", UsageError);
  CHECK_THROWS_WITH_AS(object.integer("h"), "[base] t.json: h is 1.5; it must be an integer", UsageError);
  CHECK_THROWS_AS(object.integer("big"), UsageError);
  CHECK_THROWS_AS(object.find_boolean("b"), UsageError);
  CHECK_THROWS_AS(object.number("n"), UsageError);
  CHECK_THROWS_AS(object.text("h"), UsageError);
  CHECK_THROWS_WITH_AS(object.integer("m"), "[base] t.json: m is missing; add it", UsageError);
  CHECK_THROWS_AS(JsonObject(value["n"], "t"), UsageError);
}

TEST_CASE("a key nobody asked for is refused with the nearest known one") {
  const nlohmann::json value = parse_json(R"({"hidden_size": 8, "hiden_size": 9})", "t");
  JsonObject object(value, "[base] t.json");
  object.integer("hidden_size");
  CHECK_THROWS_WITH_AS(object.finish(),
                       "[base] t.json: unknown key \"hiden_size\" = 9; the nearest known key is hidden_size",
                       UsageError);
  object.ignore("hiden_size");
  CHECK_NOTHROW(object.finish());
}

TEST_CASE("a file that is missing, a folder or too large is refused") {
  CHECK_THROWS_AS(read_text_file("tests/base/no_such_file", "t"), UsageError);
  CHECK_THROWS_AS(read_text_file("tests/base", "t"), UsageError);
  CHECK_THROWS_AS(read_text_file("tests/base/json_test.cpp", "t", 10), UsageError);
  CHECK(holds(read_text_file("tests/base/json_test.cpp", "t"), "a file that is missing"));
}
