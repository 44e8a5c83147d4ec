#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "checkpoint/safetensors_header.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/checkpoint/safetensors.h"

namespace octavo {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kLengthBytes = 8;

}  // namespace

// A file's bytes in memory, read only.
class SafetensorsFile::Mapping {
 public:
  Mapping(const std::filesystem::path& file, const std::string& where) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not block
    if (descriptor < 0) fail(where);
    struct stat status = {};
    const bool known = ::fstat(descriptor, &status) == 0;
    if (known && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::size_t>(status.st_size);
      if (size_ > 0) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    const int reason = errno;
    ::close(descriptor);
    errno = reason;
    if (!known || data_ == MAP_FAILED) fail(where);
    if (!S_ISREG(status.st_mode)) throw UsageError(cat(where, ": is not a file; check the path"));
  }
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (size_ > 0 && data_ != MAP_FAILED) ::munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  [[noreturn]] static void fail(const std::string& where) {
    throw UsageError(cat(where, ": cannot be opened (", std::strerror(errno), "); check path and permissions"));
  }
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

std::int64_t StoredTensor::num_elements() const {
  const std::optional<std::int64_t> elements = count_elements(shape);
  internal_check(elements.has_value(), cat("[checkpoint] ", name, ": shape ", shape_text(shape), " is out of range"));
  return *elements;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file) : path_(file) {
  const std::string where = cat("[checkpoint] ", file.string());
  mapping_ = std::make_unique<Mapping>(file, where);
  const std::span<const std::byte> bytes = mapping_->bytes();
  if (bytes.size() < kLengthBytes) {
    throw UsageError(
        cat(where, ": has ", bytes.size(), " bytes; a safetensors file begins with 8 bytes of header length"));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  const std::size_t rest = bytes.size() - kLengthBytes;
  if (header_bytes > rest || header_bytes > kMaxHeaderBytes) {
    throw UsageError(cat(where, ": the header length is ", header_bytes, "; ", rest, " bytes follow it, and at most ",
                         kMaxHeaderBytes, " are allowed"));
  }
  data_begin_ = kLengthBytes + static_cast<std::size_t>(header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, header_bytes);
  SafetensorsHeader header = parse_safetensors_header(text, static_cast<Bytes>(bytes.size() - data_begin_), where);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return mapping_->bytes().subspan(data_begin_ + static_cast<std::size_t>(tensor.begin),
                                   static_cast<std::size_t>(tensor.end - tensor.begin));
}

template <class Value>
void SafetensorsFile::read(const std::string& name, std::int64_t first, std::span<Value> out) const {
  const StoredTensor* tensor = find(name);
  internal_check(tensor != nullptr, cat("[checkpoint] ", path_.string(), ": holds no tensor ", in_quotes(name)));
  if (!is_weight_type(tensor->type)) {
    throw UsageError(cat("[checkpoint] ", path_.string(), ": ", in_quotes(name), " has dtype ",
                         storage_type_name(tensor->type), "; weights must be F64, F32, F16 or BF16"));
  }
  const std::int64_t total = tensor->num_elements();
  internal_check(first >= 0 && first <= total && out.size() <= static_cast<std::size_t>(total - first),
                 cat("[checkpoint] ", name, ": elements ", first, " to ", first, " + ", out.size(), " of ", total));
  const auto width = static_cast<std::size_t>(storage_bits(tensor->type)) / 8;
  decode(tensor->type, bytes(*tensor).subspan(static_cast<std::size_t>(first) * width, out.size() * width), out);
}

void SafetensorsFile::read_as_float(const std::string& name, std::int64_t first, std::span<float> out) const {
  read(name, first, out);
}

void SafetensorsFile::read_as_double(const std::string& name, std::int64_t first, std::span<double> out) const {
  read(name, first, out);
}

}  // namespace octavo
