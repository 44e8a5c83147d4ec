// A rank's connection to the keys and values that the ranks of a job share: how they find each other, and what they
// tell each other about failures. Hosted by rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/c10d/store_server.h"
#include "octavo/comm/launch.h"

namespace octavo {

/// Calls answer nullopt when the store is lost: its host is gone, or has not answered in time. It then stays
/// lost: a rank that reports a failure must not wait for a host that is part of it. Thread-safe; one call at a time.
class KeyStore {
 public:
  struct Place {
    std::string address;
    int port;
  };

  /// Every answer may take as long as the deadline. Throws CommError if nobody answers there before the deadline.
  KeyStore(const Place& place, int rank, std::chrono::milliseconds deadline);
  ~KeyStore();
  KeyStore(const KeyStore&) = delete;
  KeyStore& operator=(const KeyStore&) = delete;

  /// From now on an answer may take a second: the ranks have started, and what is told now is about failures.
  void be_brief() { patience_ = std::chrono::milliseconds(1000); }

  bool set(const std::string& key, const std::string& value);
  std::optional<std::int64_t> add(const std::string& key, std::int64_t amount);
  /// The value of a key, waited for at most `patience`; nullopt if it does not come.
  std::optional<std::string> get(const std::string& key, std::chrono::milliseconds patience);
  /// nullopt if it is not set now.
  std::optional<std::string> look_up(const std::string& key) { return get(key, std::chrono::milliseconds(0)); }
  /// Sets the key unless it is set; what it holds then.
  std::optional<std::string> set_once(const std::string& key, const std::string& value);

 private:
  struct Answer {
    bool found;
    std::string value;
  };
  std::optional<Answer> ask(RequestHead head, const std::string& key, const std::string& value);

  std::mutex mutex_;
  std::chrono::milliseconds patience_;
  int socket_ = -1;  // -1: lost
};

/// Where the job's store is; rank 0 makes it first.
struct HostedStore {
  std::unique_ptr<StoreServer> server;  // rank 0's
  KeyStore::Place place;
};

/// At the launch's master, or, where the launcher hosts a store of its own there, wherever that one tells. Throws
/// UsageError if the port is taken, CommError if the launcher's store is not reached before the deadline.
HostedStore host_store(const Launch& launch, std::chrono::milliseconds deadline);

}  // namespace octavo
