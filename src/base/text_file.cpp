#include <fstream>
#include <system_error>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

namespace octavo {

std::string read_text_file(const std::filesystem::path& file, const std::string& where, std::int64_t max_bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) throw UsageError(cat(where, ": does not exist; check the path"));
  if (!std::filesystem::is_regular_file(status)) throw UsageError(cat(where, ": is not a file; check the path"));
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (!error && size > static_cast<std::uintmax_t>(max_bytes)) {
    throw UsageError(cat(where, ": has ", size, " bytes; at most ", max_bytes, " are read"));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(error ? 0 : static_cast<std::size_t>(size), '\0');
  if (!stream || error || !stream.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    throw UsageError(cat(where, ": cannot be read; check its permissions"));
  }
  return text;
}

}  // namespace octavo
