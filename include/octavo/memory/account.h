// What one rank's tensors cost: live and peak bytes by category, counted by the allocator itself; and the FLOPs of the
// products made of them, counted by the ops.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/base/units.h"

namespace octavo {

enum class MemoryCategory { Weights, Gradients, Optimizer, Activations, Workspace, Communication, Data };
inline constexpr int kNumMemoryCategories = 7;
std::string_view memory_category_name(MemoryCategory category);

struct MemorySnapshot {
  Bytes total = 0;
  std::array<Bytes, kNumMemoryCategories> by_category{};

  /// "gradients 3.1 MB, weights 3.1 MB": the categories that hold anything, largest first.
  std::string to_string() const;
};

/// FLOPs of the products that ran (on meta tensors: that would have), from the shapes that the kernels got. A
/// multiply-add counts as two.
struct ExecutedFlops {
  Flops matmul = 0;            // 2 m k n per product of [m, k] by [k, n]
  Flops attention = 0;         // 2 D per product, query head and pair of a query and a key that it may see
  Flops attention_masked = 0;  // the same for pairs that attention's blocks compute for nothing: beyond the causal
                               // border, and padding

  Flops total() const { return matmul + attention + attention_masked; }
};

/// The account of one rank. Blocks keep it alive, so tensors may outlive the rank that made them. Thread-safe: a block
/// may be freed by another thread than the one that is charged for it.
class MemoryAccount {
 public:
  struct Release {
    void operator()(MemoryAccount* account) const { account->release(); }
  };
  /// `limit`: bytes that live tensors may not exceed together; 0 = none.
  static std::unique_ptr<MemoryAccount, Release> create(Bytes limit = 0);
  void retain();
  void release();  // the last release deletes the account

  MemorySnapshot live() const;
  MemorySnapshot peak() const;  // as it was when the total was highest since reset_peak()
  /// The most that each category held since reset_peak(), each at its own moment.
  std::array<Bytes, kNumMemoryCategories> highest() const;
  void reset_peak();

  /// Books an allocation. Throws CheckFailed with a report of what is alive if it would pass the limit.
  void charge(MemoryCategory category, Bytes bytes);
  void discharge(MemoryCategory category, Bytes bytes);

  ExecutedFlops flops() const;  // since reset_flops()
  void add_flops(const ExecutedFlops& flops);
  void reset_flops();

 private:
  explicit MemoryAccount(Bytes limit) : limit_(limit) {}
  [[noreturn]] void refuse(MemoryCategory category, Bytes bytes);
  void lock() const;
  void unlock() const { busy_.clear(std::memory_order_release); }

  const Bytes limit_;
  std::atomic<int> references_{1};
  mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  MemorySnapshot live_, peak_;
  std::array<Bytes, kNumMemoryCategories> highest_{};
  ExecutedFlops flops_;
};

using AccountHandle = std::unique_ptr<MemoryAccount, MemoryAccount::Release>;

/// Charges this thread's allocations to `account` while it lives. The account must outlive it.
class ChargeTo {
 public:
  explicit ChargeTo(MemoryAccount* account);
  ~ChargeTo();
  ChargeTo(const ChargeTo&) = delete;
  ChargeTo& operator=(const ChargeTo&) = delete;

 private:
  MemoryAccount* previous_;
};

/// Adds to the account that this thread charges; nothing happens without one.
void count_flops(const ExecutedFlops& flops);

/// Books this thread's allocations under `category` while it lives; outside of any they count as workspace.
class CategoryScope {
 public:
  explicit CategoryScope(MemoryCategory category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  MemoryCategory previous_;
};

/// Makes libtorch allocate CPU and meta tensors through the accounts. Process-wide, once, before the first tensor.
/// Freed blocks are kept for the next allocation of their size, up to 4 GB; no account counts those.
void install_tracking_allocator();

}  // namespace octavo
