#include "comm/c10d/peer_links.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "comm/c10d/store_adapter.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

// Tags of messages are below: see gloo_group.cpp.
constexpr std::int32_t kFarewellTag = (1 << 30) + 1;
constexpr std::int32_t kNeverSentTag = (1 << 30) + 2;
constexpr std::int32_t kBlameTag = (1 << 30) + 3;

// Waits end by closing, not by Gloo's timeouts: those would count from the posting, not from the wait of a rank.
constexpr auto kForEver = std::chrono::hours(24 * 365);

at::Tensor bytes_of(std::byte* data, std::int64_t num_bytes) {
  return at::from_blob(data, {num_bytes}, at::TensorOptions(at::kByte));
}

/// The first line: c10d adds a stack trace, Gloo its place in the sources.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  if (const std::size_t place = text.find("] "); !text.empty() && text.front() == '[' && place != std::string::npos) {
    text.erase(0, place + 2);
  }
  return text.substr(0, text.find(". This is typically"));
}

}  // namespace

struct PeerLinks::Waits {
  std::mutex mutex;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  bool closed = false;

  void enter(const c10::intrusive_ptr<c10d::Work>& work) {
    const std::lock_guard lock(mutex);
    if (closed) throw LinkFailure("the connection was closed here");
    works.push_back(work);
  }
  void leave(const c10::intrusive_ptr<c10d::Work>& work) {
    const std::lock_guard lock(mutex);
    std::erase(works, work);
  }
  /// Gloo tells most waits that their connection is closed, but not those for a send that has begun.
  void end_all() {
    const std::lock_guard lock(mutex);
    closed = true;
    for (const auto& work : works) work->abort();
  }
};

class PeerLinks::GlooFlight final : public Flight {
 public:
  GlooFlight(c10::intrusive_ptr<c10d::Work> work, std::shared_ptr<Waits> waits)
      : work_(std::move(work)), waits_(std::move(waits)) {}
  void wait() override {
    waits_->enter(work_);
    try {
      const bool done = work_->wait(std::chrono::duration_cast<std::chrono::milliseconds>(kForEver));
      waits_->leave(work_);
      if (!done) throw LinkFailure("the connection was closed here");
    } catch (const LinkFailure&) {
      throw;
    } catch (const std::exception& error) {
      waits_->leave(work_);
      throw LinkFailure(reason_of(error));
    }
  }
  /// Whether the connection has ended; a message that has arrived hides it.
  bool has_ended() const {
    try {
      work_->abort();  // the next wait returns at once
      work_->wait();
    } catch (const std::exception&) {
      return true;
    }
    return false;
  }
  void wait_or_close(std::chrono::milliseconds patience) override {
    try {
      work_->wait(patience);
    } catch (const std::exception& error) {
      throw LinkFailure(reason_of(error));
    }
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::shared_ptr<Waits> waits_;  // shared with the links and the other flights
};

struct PeerLinks::Group {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

struct PeerLinks::Note {
  std::array<char, 512> text{};
  std::unique_ptr<Flight> flight;
  std::byte* data() { return reinterpret_cast<std::byte*>(text.data()); }
};

LinkDevice open_device(const std::string& interface_name, const std::string& address) {
  try {
    return {interface_name.empty() ? c10d::ProcessGroupGloo::createDeviceForHostname(address)
                                   : c10d::ProcessGroupGloo::createDeviceForInterface(interface_name)};
  } catch (const std::exception& error) {
    throw UsageError(cat("[comm] the network interface ",
                         interface_name.empty() ? cat("with address ", address) : in_quotes(interface_name),
                         " cannot be used: ", reason_of(error),
                         "; set GLOO_SOCKET_IFNAME to one that `ip addr` lists."));
  }
}

PeerLinks::PeerLinks(const LinkDevice& device, const LinkOptions& options)
    : waits_(std::make_shared<Waits>()),
      index_(options.index),
      size_(options.size),
      notes_(options.size),
      blamed_(options.size, -1),
      group_(std::make_unique<Group>()) {
  try {
    auto settings = c10d::ProcessGroupGloo::Options::create(options.deadline);
    settings->devices = {device.device};
    settings->threads = 1;  // for Gloo's own collectives, which are not used
    group_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(options.prefix,
                                               c10::make_intrusive<StoreAdapter>(options.store, options.deadline)),
        index_, size_, settings);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == index_) continue;
      notes_[peer] = std::make_unique<Note>();
      Note& note = *notes_[peer];
      note.flight = receive(peer, note.data(), static_cast<std::int64_t>(note.text.size()), kFarewellTag);
      blame_flights_.push_back(
          receive(peer, reinterpret_cast<std::byte*>(&blamed_[peer]), sizeof(std::int32_t), kBlameTag));
    }
  } catch (const LinkFailure&) {
    throw;
  } catch (const std::exception& error) {
    throw LinkFailure(reason_of(error));
  }
}

PeerLinks::~PeerLinks() {
  close("");
}

std::unique_ptr<Flight> PeerLinks::post(bool sends, int peer, std::byte* data, std::int64_t num_bytes,
                                        std::int32_t tag) {
  std::vector<at::Tensor> tensors{bytes_of(data, num_bytes)};
  const std::lock_guard lock(mutex_);
  try {
    return std::make_unique<GlooFlight>(
        sends ? group_->gloo->send(tensors, peer, tag) : group_->gloo->recv(tensors, peer, tag), waits_);
  } catch (const std::exception& error) {
    throw LinkFailure(reason_of(error));
  }
}

std::unique_ptr<Flight> PeerLinks::send(int peer, const std::byte* data, std::int64_t num_bytes, std::int32_t tag) {
  return post(/*sends=*/true, peer, const_cast<std::byte*>(data), num_bytes, tag);  // Gloo only reads it
}

std::unique_ptr<Flight> PeerLinks::receive(int peer, std::byte* data, std::int64_t num_bytes, std::int32_t tag) {
  return post(/*sends=*/false, peer, data, num_bytes, tag);
}

void PeerLinks::blame(int late) {
  blames_ = late;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == index_) continue;
    try {
      blame_flights_.push_back(send(peer, reinterpret_cast<const std::byte*>(&blames_), sizeof(blames_), kBlameTag));
    } catch (const LinkFailure&) {
      // That peer knows already that something is wrong.
    }
  }
}

std::optional<int> PeerLinks::blamed_by(int peer) const {
  auto& value = const_cast<std::int32_t&>(blamed_[peer]);  // atomic_ref reads non-const values only
  const std::int32_t late = std::atomic_ref<std::int32_t>(value).load(std::memory_order_acquire);
  return late >= 0 ? std::optional<int>(late) : std::nullopt;
}

void PeerLinks::close(const std::string& farewell) noexcept {
  try {
    std::call_once(closed_, [&] {
      if (farewell.empty()) {
        break_connections();
      } else {
        say_farewell(farewell);
      }
      waits_->end_all();
    });
  } catch (...) {
    // Whatever could not be told or closed is closed with the process.
  }
}

void PeerLinks::say_farewell(const std::string& text) {
  auto note = std::make_unique<Note>();
  std::memcpy(note->text.data(), text.data(), std::min(text.size(), note->text.size() - 1));
  std::vector<std::unique_ptr<Flight>> flights;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == index_) continue;
    try {
      // The receive is there since the group was made, so the bytes go out at once, in front of the closing.
      flights.push_back(send(peer, note->data(), static_cast<std::int64_t>(note->text.size()), kFarewellTag));
    } catch (const LinkFailure&) {
      // This peer is gone; the others are told.
    }
  }
  // What a full socket has not taken by now is behind data that nobody reads.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  break_connections();
}

// Gloo closes all connections of a group when a wait runs out of time: its only public way to do so.
void PeerLinks::break_connections() {
  std::byte nothing[1];
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == index_) continue;
    std::vector<at::Tensor> tensors{bytes_of(nothing, 1)};
    try {
      c10::intrusive_ptr<c10d::Work> work;
      {
        const std::lock_guard lock(mutex_);
        work = group_->gloo->recv(tensors, peer, kNeverSentTag);
      }
      work->wait(std::chrono::milliseconds(1));
    } catch (const std::exception&) {
      // Now they are closed; or that one was broken before, and the next is tried.
    }
  }
}

bool PeerLinks::has_ended(int peer) {
  const std::lock_guard lock(notes_mutex_);
  Note& note = *notes_[peer];
  // The first byte of a farewell is written by Gloo's thread.
  const bool told = std::atomic_ref<char>(note.text[0]).load(std::memory_order_acquire) != '\0';
  return told || !note.flight || static_cast<const GlooFlight&>(*note.flight).has_ended();
}

std::optional<std::string> PeerLinks::farewell(int peer) {
  const std::lock_guard lock(notes_mutex_);
  Note& note = *notes_[peer];
  if (note.flight) {
    try {
      note.flight->wait_or_close(std::chrono::milliseconds(500));  // at once, if the connection has ended
    } catch (const LinkFailure&) {
      note.text.fill('\0');
    }
    note.flight.reset();
  }
  if (note.text[0] == '\0') return std::nullopt;
  return std::string(note.text.data());
}

}  // namespace octavo
