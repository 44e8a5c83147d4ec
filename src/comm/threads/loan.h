// Memory that its owner lends to the readers of one operation, and who of them has given it back.
//
// A reader keeps the memory alive by a counted reference of its own, taken while the lane says that the owner's call
// can be read. So neither side ever waits for the other to fail: an owner that leaves early lets go of its reference,
// and the memory lives until the last reader has given it back.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace octavo {

class Loan {
 public:
  /// `memory` keeps it alive and points at its first element. `owner` of `num_participants` reads nothing.
  Loan(std::shared_ptr<const void> memory, int num_participants, int owner)
      : memory_(std::move(memory)), is_back_(num_participants) {
    give_back(owner);
  }

  /// For a reader, while its lane and the group's Access allow it.
  const std::shared_ptr<const void>& memory() const { return memory_; }
  void give_back(int participant) { is_back_[participant].store(true, std::memory_order_release); }

  bool is_back(int participant) const { return is_back_[participant].load(std::memory_order_acquire); }
  bool all_back() const {
    return std::all_of(is_back_.begin(), is_back_.end(),
                       [](const std::atomic<bool>& is_back) { return is_back.load(std::memory_order_acquire); });
  }

  /// For the owner, when all is back, or the group is poisoned and quiet so that nobody takes any more.
  void end() { memory_.reset(); }

 private:
  std::shared_ptr<const void> memory_;
  std::vector<std::atomic<bool>> is_back_;  // by participant
};

/// What one reader holds of a loan; gives it back when destroyed. Move-only.
class HeldLoan {
 public:
  HeldLoan() = default;  // nothing
  /// The loan is shared: owner and readers may leave it in any order.
  HeldLoan(std::shared_ptr<Loan> loan, int participant)
      : loan_(std::move(loan)), memory_(loan_->memory()), participant_(participant) {}
  HeldLoan(HeldLoan&& other) noexcept
      : loan_(std::exchange(other.loan_, nullptr)),
        memory_(std::exchange(other.memory_, nullptr)),
        participant_(other.participant_) {}
  HeldLoan& operator=(HeldLoan&& other) noexcept {
    give_back();
    loan_ = std::exchange(other.loan_, nullptr);
    memory_ = std::exchange(other.memory_, nullptr);
    participant_ = other.participant_;
    return *this;
  }
  ~HeldLoan() { give_back(); }

  /// Whoever copies it keeps the memory alive, but may not read it once this is destroyed.
  const std::shared_ptr<const void>& memory() const { return memory_; }

 private:
  void give_back() {
    memory_ = nullptr;
    if (loan_) loan_->give_back(participant_);
    loan_ = nullptr;
  }

  std::shared_ptr<Loan> loan_;
  std::shared_ptr<const void> memory_;
  int participant_ = 0;
};

}  // namespace octavo
