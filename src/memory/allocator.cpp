// libtorch's allocator with an account in front of every block, over a cache of free blocks: the kernel clears every
// page it hands out, which for the temporaries of a training step costs more than filling them.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "octavo/memory/account.h"

namespace octavo {
namespace {

// The one exception to "no thread-locals": an allocation or a product has no other way to learn whose it is.
struct Charged {
  MemoryAccount* account = nullptr;
  MemoryCategory category = MemoryCategory::Workspace;
};
thread_local Charged charged;

struct Header {
  MemoryAccount* account;  // retained; null: nobody is charged
  MemoryCategory category;
  std::size_t bytes;        // as asked for
  std::size_t block_bytes;  // with header, as taken from the cache
};
constexpr std::size_t kHeaderBytes = 64;  // keeps the tensor's bytes 64-byte aligned
static_assert(sizeof(Header) <= kHeaderBytes);

Header make_header(std::size_t bytes, std::size_t block_bytes) {
  if (charged.account != nullptr) {
    charged.account->charge(charged.category, static_cast<Bytes>(bytes));
    charged.account->retain();
  }
  return {charged.account, charged.category, bytes, block_bytes};
}

void settle(const Header& header) {
  if (header.account == nullptr) return;
  header.account->discharge(header.category, static_cast<Bytes>(header.bytes));
  header.account->release();
}

/// Free blocks by exact size. Small ones are left to malloc, which is as good there.
class BlockCache {
 public:
  static constexpr std::size_t kSmall = 64 << 10, kPage = 4 << 10, kMaxCached = std::size_t{4} << 30;

  static std::size_t rounded(std::size_t bytes) {
    const std::size_t grain = bytes < kSmall ? 64 : kPage;
    return (bytes + grain - 1) / grain * grain;
  }

  void* take(std::size_t bytes) {
    if (bytes >= kSmall) {
      const std::lock_guard guard(mutex_);
      const auto found = free_.find(bytes);
      if (found != free_.end() && !found->second.empty()) {
        void* block = found->second.back();
        found->second.pop_back();
        cached_ -= bytes;
        return block;
      }
    }
    const std::size_t alignment = bytes >= kSmall ? kPage : 64;
    void* block = std::aligned_alloc(alignment, bytes);
    if (block == nullptr) {
      drain();
      block = std::aligned_alloc(alignment, bytes);
    }
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }

  void give(void* block, std::size_t bytes) {
    if (bytes >= kSmall) {
      // Full of sizes that do not come again, as those of a growing prefix: start over.
      if (is_full(bytes)) drain();
      const std::lock_guard guard(mutex_);
      free_[bytes].push_back(block);
      cached_ += bytes;
      return;
    }
    std::free(block);
  }

 private:
  bool is_full(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    return cached_ + bytes > kMaxCached;
  }

  void drain() {
    std::map<std::size_t, std::vector<void*>> blocks;
    {
      const std::lock_guard guard(mutex_);
      blocks.swap(free_);
      cached_ = 0;
    }
    for (const auto& [bytes, list] : blocks) {
      for (void* block : list) std::free(block);
    }
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::size_t cached_ = 0;
};

class TrackingCpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free_block, c10::Device(c10::DeviceType::CPU)};
    const std::size_t block_bytes = BlockCache::rounded(bytes + kHeaderBytes);
    const Header header = make_header(bytes, block_bytes);
    char* block;
    try {
      block = static_cast<char*>(cache().take(block_bytes));
    } catch (...) {
      settle(header);
      throw;
    }
    std::memcpy(block, &header, sizeof(header));
    void* data = block + kHeaderBytes;
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }

 private:
  // Never destroyed: libtorch frees tensors of its own after main has returned.
  static BlockCache& cache() {
    static BlockCache* cache = new BlockCache;
    return *cache;
  }
  static void free_block(void* data) {
    if (data == nullptr) return;
    char* block = static_cast<char*>(data) - kHeaderBytes;
    Header header;
    std::memcpy(&header, block, sizeof(header));
    settle(header);
    cache().give(block, header.block_bytes);
  }
};

/// Meta tensors have no bytes; only the header exists.
class TrackingMetaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* header = new Header(make_header(bytes, 0));
    return {nullptr, header, &free_header, c10::Device(c10::DeviceType::Meta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  static void free_header(void* context) {
    auto* header = static_cast<Header*>(context);
    settle(*header);
    delete header;
  }
};

}  // namespace

ChargeTo::ChargeTo(MemoryAccount* account) : previous_(charged.account) {
  charged.account = account;
}
ChargeTo::~ChargeTo() {
  charged.account = previous_;
}

void count_flops(const ExecutedFlops& flops) {
  if (charged.account != nullptr) charged.account->add_flops(flops);
}

CategoryScope::CategoryScope(MemoryCategory category) : previous_(charged.category) {
  charged.category = category;
}
CategoryScope::~CategoryScope() {
  charged.category = previous_;
}

void install_tracking_allocator() {
  // Both live as long as libtorch may free through them: for ever.
  static auto* cpu = new TrackingCpuAllocator;
  static auto* meta = new TrackingMetaAllocator;
  c10::SetCPUAllocator(cpu, /*priority=*/100);
  c10::SetAllocator(c10::DeviceType::Meta, meta, /*priority=*/100);
}

}  // namespace octavo
