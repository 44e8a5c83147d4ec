#include "checkpoint/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

OutputFile::OutputFile(const std::filesystem::path& file) : file_(file) {
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = file;
    temporary_ += cat(".partial-", ::getpid(), "-", attempt);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail("cannot be made");
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void OutputFile::commit() {
  if (::fsync(descriptor_) != 0) fail("cannot be synced to disk");
  if (::rename(temporary_.c_str(), file_.c_str()) != 0) fail("cannot get its name");
  ::close(descriptor_);
  descriptor_ = -1;
  sync_folder(file_.parent_path());
}

void OutputFile::fail(const char* what) const {
  const std::string reason = std::strerror(errno);
  throw UsageError(
      cat("[checkpoint] ", file_.string(), ": ", what, " (", reason, "); check folder, permissions and space"));
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path name = folder.empty() ? "." : folder;
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // a folder may be writable and not readable; the data itself is safe
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace octavo
