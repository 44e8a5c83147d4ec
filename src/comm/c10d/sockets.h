// TCP in the few forms that the job's store needs, every call bounded in time.
#pragma once

#include <chrono>
#include <string>

namespace octavo {

struct Listening {
  int socket;
  int port;
};
/// On all interfaces, or only on the loopback if `address` is there. Throws UsageError if the port is taken or the
/// address is not of this machine.
Listening listen_at(const std::string& address, int port);

/// A connection that waits there; -1 if there is none any more.
int accept_from(int listener);

/// Connected to it, or -1 if it does not listen by then. Tries again until then, for it may not have started yet.
int connect_to(const std::string& address, int port, std::chrono::steady_clock::time_point deadline);

/// Whether all was sent, or received, in time.
bool send_all(int socket, const std::string& bytes, std::chrono::milliseconds patience);
bool receive_all(int socket, char* bytes, std::size_t size, std::chrono::milliseconds patience);

/// The address of this machine that packets to `address` leave from; 127.0.0.1 if there is no way. Nothing is sent.
std::string local_address_towards(const std::string& address, int port);

/// Whether it names this machine's loopback.
bool is_loopback(const std::string& address);

}  // namespace octavo
