// The host of a job's keys: one thread that answers all ranks.
//
// c10d's TCPStore would do, but it asks the name server for the name of every peer that connects: where that does not
// answer, ranks wait for seconds before they start, and a call cannot be bounded in time. (Under torchrun its store is
// used once, to tell the ranks where this one is.)
//
// A request is a RequestHead, the key and the value; an answer is an AnswerHead and a value.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace octavo {

enum class StoreCall : std::uint32_t { Set, SetOnce, Add, Get };

struct RequestHead {
  static constexpr std::uint32_t kMagic = 0x6f637476;  // strangers who connect are dropped
  std::uint32_t magic = kMagic;
  StoreCall call = StoreCall::Get;
  std::uint32_t key_size = 0;
  std::uint32_t value_size = 0;
  std::int64_t number = 0;  // Add: the amount. Get: milliseconds to wait for the key
};

struct AnswerHead {
  std::uint32_t found = 0;  // Get: whether the key is set. Else 1
  std::uint32_t value_size = 0;
};

class StoreServer {
 public:
  /// Listens at `address`; port 0: any. Throws UsageError if the port is taken or the address is not of this machine.
  StoreServer(const std::string& address, int port);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const { return port_; }

 private:
  struct Client {
    int socket;
    std::string received;
    std::string awaited_key;         // of a Get that is not answered yet; empty: none
    std::int64_t answer_before = 0;  // ms on the steady clock
    bool gone = false;
  };

  void loop();
  void serve(Client& client);
  void handle(Client& client, const RequestHead& head, const std::string& key, const std::string& value);
  void answer(Client& client, bool found, const std::string& value);
  void answer_waiting();

  int listener_ = -1;
  int port_ = 0;
  int wake_[2] = {-1, -1};  // a pipe that ends the loop
  std::vector<Client> clients_;
  std::map<std::string, std::string> values_;
  std::thread thread_;
};

}  // namespace octavo
