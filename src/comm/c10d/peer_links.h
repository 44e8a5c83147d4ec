// Connections of one rank to the other members of its group, over Gloo: raw bytes from rank to rank.
//
// A message meets the receive with its tag. Sending starts when the receive is there: nothing is buffered in between.
// Gloo moves the bytes on a thread of its own. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/c10d/key_store.h"

namespace gloo::transport {
class Device;
}

namespace octavo {

/// A connection broke, or this side closed it.
class LinkFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A message on its way. Its memory must stay valid until wait() has returned or thrown, or, if it is never waited for,
/// until the links are closed.
class Flight {
 public:
  virtual ~Flight() = default;
  /// Returns when the memory may be used again. Throws LinkFailure.
  virtual void wait() = 0;
  /// The same, but after `patience` all connections of the group are closed, and LinkFailure says so.
  virtual void wait_or_close(std::chrono::milliseconds patience) = 0;
};

/// The interface that Gloo's sockets are bound to.
struct LinkDevice {
  std::shared_ptr<gloo::transport::Device> device;
};
/// `interface_name` as "eth0"; if it is empty, the interface with the local address `address`. Throws UsageError naming
/// the interface if there is none.
LinkDevice open_device(const std::string& interface_name, const std::string& address);

struct LinkOptions {
  KeyStore& store;                     // where the members find each other
  std::string prefix;                  // equal on all members, of no other group
  int index;                           // of this rank in the group
  int size;                            // at least 2
  std::chrono::milliseconds deadline;  // of all members connecting
};

class PeerLinks {
 public:
  /// Collective over the group. Throws LinkFailure if a member does not come before the deadline.
  PeerLinks(const LinkDevice& device, const LinkOptions& options);
  ~PeerLinks();

  /// Throws LinkFailure if the connection is known to be broken.
  std::unique_ptr<Flight> send(int peer, const std::byte* data, std::int64_t num_bytes, std::int32_t tag);
  std::unique_ptr<Flight> receive(int peer, std::byte* data, std::int64_t num_bytes, std::int32_t tag);

  /// Tells all peers that this rank waits for member `late` since its deadline.
  void blame(int late);
  /// Whom `peer` waits for, if it has said so.
  std::optional<int> blamed_by(int peer) const;

  /// Ends every message in flight with LinkFailure, here and on the peers; first tells the peers `farewell`, as far as
  /// they still read. Returns when no memory is touched any more. The first call counts; later ones wait for it.
  void close(const std::string& farewell) noexcept;
  /// Whether the connection to `peer` has ended, or is about to after a farewell. Gloo tells waits for sends nothing.
  bool has_ended(int peer);
  /// What `peer` said before it closed. Only after a flight from or to `peer` has failed.
  std::optional<std::string> farewell(int peer);

 private:
  class GlooFlight;
  struct Waits;  // the waits that closing must end
  struct Note;   // what a peer may say when it leaves
  struct Group;  // Gloo's, whose type is not known here

  std::unique_ptr<Flight> post(bool sends, int peer, std::byte* data, std::int64_t num_bytes, std::int32_t tag);
  void say_farewell(const std::string& text);
  void break_connections();

  std::mutex mutex_;  // Gloo's group is made for one thread
  std::once_flag closed_;
  std::shared_ptr<Waits> waits_;  // shared with flights, which may live longer
  const int index_;
  const int size_;
  std::mutex notes_mutex_;
  std::vector<std::unique_ptr<Note>> notes_;  // by peer
  std::vector<std::int32_t> blamed_;          // by peer; written by Gloo's thread; -1: nothing yet
  std::int32_t blames_ = -1;                  // what this rank says
  std::vector<std::unique_ptr<Flight>> blame_flights_;
  std::unique_ptr<Group> group_;
};

}  // namespace octavo
