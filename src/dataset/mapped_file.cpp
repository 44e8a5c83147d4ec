#include "dataset/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

// Closes the descriptor on every way out: the mapping does not need it.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  const std::string name = file.string();
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const Descriptor descriptor{::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (descriptor.number < 0) {
    throw UsageError(
        cat("[dataset] ", name, ": ", std::strerror(errno), "; name a text, .bin or .npy file that can be read"));
  }
  struct stat status = {};
  if (::fstat(descriptor.number, &status) != 0) throw UsageError(cat("[dataset] ", name, ": ", std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) {
    throw UsageError(cat("[dataset] ", name, " is ", S_ISDIR(status.st_mode) ? "a directory" : "no regular file",
                         "; name one text, .bin or .npy file"));
  }
  if (status.st_size == 0) throw UsageError(cat("[dataset] ", name, " is empty; name a file that holds tokens"));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.number, 0);
  if (address == MAP_FAILED) {
    throw UsageError(cat("[dataset] ", name, ": cannot map ", size, " bytes (", std::strerror(errno),
                         "); put the file on a file system that can be mapped"));
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace octavo
