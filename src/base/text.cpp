#include "octavo/base/text.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace octavo {
namespace {

// Levenshtein distance: insertions, deletions and replacements of one character each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // row[j]: distance between the first i of a and the first j of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// Bytes of the well-formed UTF-8 character at the start of `text`, 0 if there is none (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool too_large = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

// Characters that end a line or steer a terminal: C0, DEL, C1, line and paragraph separator.
bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7F;
  if (character.size() == 2) return lead == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return character == "\u2028" || character == "\u2029";
}

}  // namespace

std::string fixed(double value, int digits) {
  const int length = std::snprintf(nullptr, 0, "%.*f", digits, value);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  text.pop_back();
  return text;
}

std::string percent(double share, int digits) {
  const std::string text = fixed(100 * share, digits);
  const bool is_none = text.find_first_not_of("-0.") == std::string::npos;
  return (is_none && text.front() == '-' ? text.substr(1) : text) + " %";
}

std::string with_commas(std::int64_t value) {
  const std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  // The distance costs a product of lengths: a word longer than any name is no misspelling of one.
  constexpr std::size_t kLongestWord = 128;
  if (word.size() > kLongestWord) return "";
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;  // close: a third of the letters wrong
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? "" : *best;
}

namespace {

/// The character of `text` at `at`, as it may be printed; `at` moves behind it.
std::string printable_character(std::string_view text, std::size_t& at) {
  const std::size_t length = utf8_length(text.substr(at));
  const std::string_view character = text.substr(at, std::max<std::size_t>(1, length));
  at += character.size();
  if (length > 0 && !is_control(character)) return std::string(character);
  std::string escaped;
  for (const char byte : character) {
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    escaped += {'\\', 'x', kHex[value >> 4], kHex[value & 15]};
  }
  return escaped;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) result += printable_character(text, at);
  return result;
}

std::string in_quotes(std::string_view text, std::size_t max_bytes) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    if (at >= max_bytes) {
      result += "...";
      break;
    }
    result += printable_character(text, at);
  }
  return result + "\"";
}

}  // namespace octavo
