#include "comm/c10d/key_store.h"

#include <unistd.h>

#include <cstdlib>

#include "comm/c10d/sockets.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

KeyStore::KeyStore(const Place& place, int rank, std::chrono::milliseconds deadline)
    : patience_(deadline), socket_(connect_to(place.address, place.port, std::chrono::steady_clock::now() + deadline)) {
  if (socket_ >= 0) return;
  throw CommError(cat("[comm] rank ", rank, ": ", place.address, ":", place.port, " was not reached within ",
                      fixed(std::chrono::duration<double>(deadline).count(), 1),
                      " s. Rank 0 must run there: check MASTER_ADDR, MASTER_PORT and the firewall."));
}

KeyStore::~KeyStore() {
  if (socket_ >= 0) close(socket_);
}

std::optional<KeyStore::Answer> KeyStore::ask(RequestHead head, const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  if (socket_ < 0) return std::nullopt;
  head.key_size = static_cast<std::uint32_t>(key.size());
  head.value_size = static_cast<std::uint32_t>(value.size());
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += key;
  bytes += value;
  const auto patience = patience_ + std::chrono::milliseconds(head.call == StoreCall::Get ? head.number : 0);
  AnswerHead answer;
  std::string text;
  bool arrived = send_all(socket_, bytes, patience_) &&
                 receive_all(socket_, reinterpret_cast<char*>(&answer), sizeof(answer), patience);
  if (arrived) {
    text.resize(answer.value_size);
    arrived = receive_all(socket_, text.data(), text.size(), patience_);
  }
  if (!arrived) {
    close(socket_);
    socket_ = -1;
    return std::nullopt;
  }
  return Answer{.found = answer.found != 0, .value = std::move(text)};
}

bool KeyStore::set(const std::string& key, const std::string& value) {
  return ask({.call = StoreCall::Set}, key, value).has_value();
}

std::optional<std::int64_t> KeyStore::add(const std::string& key, std::int64_t amount) {
  const std::optional<Answer> answer = ask({.call = StoreCall::Add, .number = amount}, key, "");
  return answer ? std::optional<std::int64_t>(std::strtoll(answer->value.c_str(), nullptr, 10)) : std::nullopt;
}

std::optional<std::string> KeyStore::get(const std::string& key, std::chrono::milliseconds patience) {
  std::optional<Answer> answer = ask({.call = StoreCall::Get, .number = patience.count()}, key, "");
  if (!answer || !answer->found) return std::nullopt;
  return std::move(answer->value);
}

std::optional<std::string> KeyStore::set_once(const std::string& key, const std::string& value) {
  std::optional<Answer> answer = ask({.call = StoreCall::SetOnce}, key, value);
  if (!answer) return std::nullopt;
  return std::move(answer->value);
}

}  // namespace octavo
