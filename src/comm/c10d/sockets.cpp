#include "comm/c10d/sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;
using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const char* host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, cat(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

void no_delay(int socket_fd) {
  const int on = 1;
  setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool await(int socket_fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{.fd = socket_fd, .events = events, .revents = 0};
    const int ready = poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// A connection to a port of this machine where nobody listens can meet itself.
bool is_self(int socket_fd) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof(here), there_size = sizeof(there);
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&here), &here_size);
  getpeername(socket_fd, reinterpret_cast<sockaddr*>(&there), &there_size);
  return here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

int try_connect(const addrinfo& address, Clock::time_point deadline) {
  const int socket_fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_fd < 0) return -1;
  int error = connect(socket_fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS && await(socket_fd, POLLOUT, deadline)) {
    socklen_t size = sizeof(error);
    getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0 && !is_self(socket_fd)) {
    no_delay(socket_fd);
    return socket_fd;
  }
  close(socket_fd);
  return -1;
}

}  // namespace

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

std::string local_address_towards(const std::string& address, int port) {
  const AddressList found = resolve(address.c_str(), port, 0);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const int socket_fd = socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0) continue;
    sockaddr_storage here{};
    socklen_t size = sizeof(here);
    char text[NI_MAXHOST];
    const bool known =
        connect(socket_fd, one->ai_addr, one->ai_addrlen) == 0 &&
        getsockname(socket_fd, reinterpret_cast<sockaddr*>(&here), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&here), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0;
    close(socket_fd);
    if (known) return text;
  }
  return "127.0.0.1";
}

Listening listen_at(const std::string& address, int port) {
  const bool local = is_loopback(address);
  const AddressList found = resolve(local ? address.c_str() : nullptr, port, AI_PASSIVE);
  std::string reason = "no such address";
  // Both kinds of addresses first, where there are both.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      if (one->ai_family != family) continue;
      const int socket_fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket_fd < 0) continue;
      const int on = 1, off = 0;
      setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (family == AF_INET6) setsockopt(socket_fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      sockaddr_storage here{};
      socklen_t size = sizeof(here);
      if (bind(socket_fd, one->ai_addr, one->ai_addrlen) == 0 && listen(socket_fd, SOMAXCONN) == 0 &&
          getsockname(socket_fd, reinterpret_cast<sockaddr*>(&here), &size) == 0) {
        const in_port_t bound = family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(here).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(here).sin_port;
        return {.socket = socket_fd, .port = ntohs(bound)};
      }
      reason = std::strerror(errno);
      const bool taken = errno == EADDRINUSE;
      close(socket_fd);
      if (taken) {
        throw UsageError(cat("[comm] rank 0: port ", port,
                             " is taken by another program; set MASTER_PORT to a free one on all ranks."));
      }
    }
  }
  throw UsageError(cat("[comm] rank 0: cannot listen at ", in_quotes(address), " port ", port, " (", reason,
                       "); MASTER_ADDR must be an address of rank 0's machine."));
}

int accept_from(int listener) {
  const int socket_fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket_fd >= 0) no_delay(socket_fd);
  return socket_fd;
}

int connect_to(const std::string& address, int port, Clock::time_point deadline) {
  constexpr auto kPause = std::chrono::milliseconds(10);
  do {
    const AddressList found = resolve(address.c_str(), port, 0);
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      const int socket_fd = try_connect(*one, deadline);
      if (socket_fd >= 0) return socket_fd;
    }
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < deadline);
  return -1;
}

bool send_all(int socket_fd, const std::string& bytes, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = send(socket_fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += count;
    } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!await(socket_fd, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool receive_all(int socket_fd, char* bytes, std::size_t size, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::size_t received = 0;
  while (received < size) {
    const ssize_t count = recv(socket_fd, bytes + received, size - received, MSG_DONTWAIT);
    if (count > 0) {
      received += count;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else if (!await(socket_fd, POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

}  // namespace octavo
