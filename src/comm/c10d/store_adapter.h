// The job's keys as Gloo wants them, to find the members of a group.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "comm/c10d/key_store.h"

namespace octavo {

/// Calls that get no answer throw. `keys` must outlive it.
class StoreAdapter final : public c10d::Store {
 public:
  StoreAdapter(KeyStore& keys, std::chrono::milliseconds patience) : c10d::Store(patience), keys_(keys) {}

  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<StoreAdapter>(keys_, timeout_); }
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  // Gloo calls neither.
  bool deleteKey(const std::string& key) override;
  int64_t getNumKeys() override;

 private:
  KeyStore& keys_;
};

}  // namespace octavo
