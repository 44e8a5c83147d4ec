#include "comm/c10d/store_adapter.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// What Gloo hands on as the reason of a group that does not come together.
template <class T>
T answered(std::optional<T> answer, const std::string& key) {
  if (!answer) throw std::runtime_error(cat("no answer from the job's store about ", key));
  return *std::move(answer);
}

std::string to_text(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}
std::vector<uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

void StoreAdapter::set(const std::string& key, const std::vector<uint8_t>& value) {
  answered(keys_.set(key, to_text(value)) ? std::optional<bool>(true) : std::nullopt, key);
}

std::vector<uint8_t> StoreAdapter::compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                              const std::vector<uint8_t>& desired) {
  internal_check(expected.empty(), "[comm] StoreAdapter::compareSet: only of keys that are not set.");
  return to_bytes(answered(keys_.set_once(key, to_text(desired)), key));
}

std::vector<uint8_t> StoreAdapter::get(const std::string& key) {
  return to_bytes(answered(keys_.get(key, timeout_), key));
}

int64_t StoreAdapter::add(const std::string& key, int64_t value) {
  return answered(keys_.add(key, value), key);
}

bool StoreAdapter::check(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (!keys_.look_up(key)) return false;
  }
  return true;
}

void StoreAdapter::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  for (const std::string& key : keys) answered(keys_.get(key, timeout), key);
}

bool StoreAdapter::deleteKey(const std::string&) {
  throw InternalError("[comm] StoreAdapter::deleteKey: the job's store keeps all keys.");
}

int64_t StoreAdapter::getNumKeys() {
  throw InternalError("[comm] StoreAdapter::getNumKeys: the job's store does not count its keys.");
}

}  // namespace octavo
