#include "comm/c10d/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "comm/c10d/sockets.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

constexpr std::uint32_t kLargest = 16 << 20;  // of a key or value

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

StoreServer::StoreServer(const std::string& address, int port) {
  const Listening listening = listen_at(address, port);
  listener_ = listening.socket;
  port_ = listening.port;
  if (pipe2(wake_, O_CLOEXEC) != 0) throw UsageError("[comm] no file descriptor is left for the job's store.");
  thread_ = std::thread([this] { loop(); });
}

StoreServer::~StoreServer() {
  close(wake_[1]);
  thread_.join();
  close(wake_[0]);
  close(listener_);
  for (const Client& client : clients_) close(client.socket);
}

void StoreServer::loop() {
  while (true) {
    std::vector<pollfd> watched = {{.fd = wake_[0], .events = POLLIN, .revents = 0},
                                   {.fd = listener_, .events = POLLIN, .revents = 0}};
    std::int64_t wait_ms = -1;
    for (const Client& client : clients_) {
      watched.push_back({.fd = client.socket, .events = POLLIN, .revents = 0});
      if (client.awaited_key.empty()) continue;
      const std::int64_t left = std::clamp<std::int64_t>(client.answer_before - now_ms(), 0, 1 << 30);
      wait_ms = wait_ms < 0 ? left : std::min(wait_ms, left);
    }
    poll(watched.data(), watched.size(), static_cast<int>(wait_ms));
    if (watched[0].revents != 0) return;
    for (std::size_t index = 2; index < watched.size(); ++index) {
      if (watched[index].revents != 0) serve(clients_[index - 2]);
    }
    answer_waiting();
    std::erase_if(clients_, [](const Client& client) {
      if (client.gone) close(client.socket);
      return client.gone;
    });
    if (watched[1].revents != 0) {
      const int accepted = accept_from(listener_);
      if (accepted >= 0) clients_.push_back({.socket = accepted, .received = {}, .awaited_key = {}});
    }
  }
}

void StoreServer::serve(Client& client) {
  char buffer[64 << 10];
  const ssize_t count = recv(client.socket, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    client.gone = true;
    return;
  }
  client.received.append(buffer, count);
  while (!client.gone && client.received.size() >= sizeof(RequestHead)) {
    RequestHead head;
    std::memcpy(&head, client.received.data(), sizeof(head));
    if (head.magic != RequestHead::kMagic || head.key_size > kLargest || head.value_size > kLargest) {
      client.gone = true;
      return;
    }
    const std::size_t whole = sizeof(head) + head.key_size + head.value_size;
    if (client.received.size() < whole) return;
    const std::string key = client.received.substr(sizeof(head), head.key_size);
    const std::string value = client.received.substr(sizeof(head) + head.key_size, head.value_size);
    client.received.erase(0, whole);
    handle(client, head, key, value);
  }
}

void StoreServer::handle(Client& client, const RequestHead& head, const std::string& key, const std::string& value) {
  switch (head.call) {
    case StoreCall::Set:
      values_[key] = value;
      return answer(client, true, "");
    case StoreCall::SetOnce:
      return answer(client, true, values_.try_emplace(key, value).first->second);
    case StoreCall::Add: {
      std::string& sum = values_[key];
      sum = cat(std::strtoll(sum.c_str(), nullptr, 10) + head.number);
      return answer(client, true, sum);
    }
    case StoreCall::Get:
      client.awaited_key = key;
      client.answer_before = now_ms() + head.number;
      return;  // answer_waiting() comes next
  }
  client.gone = true;
}

void StoreServer::answer_waiting() {
  for (Client& client : clients_) {
    if (client.awaited_key.empty()) continue;
    const auto found = values_.find(client.awaited_key);
    if (found == values_.end() && now_ms() < client.answer_before) continue;
    client.awaited_key.clear();
    answer(client, found != values_.end(), found != values_.end() ? found->second : "");
  }
}

void StoreServer::answer(Client& client, bool found, const std::string& value) {
  const AnswerHead head{.found = found ? 1u : 0u, .value_size = static_cast<std::uint32_t>(value.size())};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += value;
  // Answers are short: a rank that takes none for a second is stopped or dead.
  if (!send_all(client.socket, bytes, std::chrono::seconds(1))) client.gone = true;
}

}  // namespace octavo
