#include "octavo/base/json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;

// A pointer into the text that reports how far the parser has come.
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the value from the parser's events and stops at what nlohmann::json would let pass.
class StrictBuilder : public nlohmann::json_sax<json> {
 public:
  json root;
  std::string problem;  // set when an event returned false

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return stop("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      return stop(cat("the key ", in_quotes(name), " appears twice in one object; keep one"));
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 2, column 3: what was wrong; expected ..."
    std::string_view text = error.what();
    if (const std::size_t bracket = text.find("] "); bracket != text.npos) text.remove_prefix(bracket + 2);
    constexpr std::string_view kPlace = "parse error at line ";
    if (text.substr(0, kPlace.size()) == kPlace) text.remove_prefix(std::min(text.size(), text.find(": ") + 2));
    const std::string safe = in_quotes(text, 300);
    return stop(safe.substr(1, safe.size() - 2));
  }

 private:
  bool stop(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool add(json value) {
    place(std::move(value));
    return true;
  }
  json* place(json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    return &((*open_.back())[key_] = std::move(value));
  }
  bool open(json container) {
    if (open_.size() == kMaxDepth) return stop(cat("more than ", kMaxDepth, " levels of nesting"));
    open_.push_back(place(std::move(container)));  // stays put: nothing is added to its parent while it is open
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<json*> open_;
  std::string key_;
};

std::string line_and_column(std::string_view before) {
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t last_break = before.rfind('\n');
  const std::size_t column = last_break == before.npos ? before.size() : before.size() - last_break - 1;
  return cat("line ", line, ", column ", std::max<std::size_t>(1, column));
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) throw UsageError(cat(where, ": is empty; it must hold JSON"));
  // The parser takes a zero byte for the end of the text, and would not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    throw UsageError(cat(where, ": ", line_and_column(text.substr(0, zero + 1)), ": a zero byte is not JSON"));
  }
  const char* furthest = text.data();
  StrictBuilder builder;
  const bool fine =
      json::sax_parse(Cursor(text.data(), &furthest), Cursor(text.data() + text.size(), &furthest), &builder);
  if (!fine) {
    const auto read = static_cast<std::size_t>(furthest - text.data());
    throw UsageError(cat(where, ": ", line_and_column(text.substr(0, read)), ": ", builder.problem));
  }
  return std::move(builder.root);
}

std::string show_json(const nlohmann::json& value) {
  const std::string text = in_quotes(value.dump(-1, ' ', false, json::error_handler_t::replace), 80);
  return text.substr(1, text.size() - 2);
}

}  // namespace octavo
