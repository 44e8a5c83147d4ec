// Where the job's store is, with c10d's TCPStore as the guide where the launcher hosts one.
#include <ATen/ATen.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/c10d/key_store.h"
#include "comm/c10d/sockets.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

std::vector<std::uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

/// Rank 0 tells the others in the launcher's store where its own is.
HostedStore meet_in_launchers_store(const Launch& launch, std::chrono::milliseconds deadline) {
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(launch.master_port);
    options.waitWorkers = false;
    options.timeout = deadline;
    c10d::PrefixStore keys(cat("octavo/", launch.attempt),
                           c10::make_intrusive<c10d::TCPStore>(launch.master_address, options));
    HostedStore hosted;
    if (launch.rank == 0) {
      // Rank 0 need not be on the machine that the launcher's store is on.
      const std::string address = local_address_towards(launch.master_address, launch.master_port);
      hosted.server = std::make_unique<StoreServer>(address, 0);
      hosted.place = {address, hosted.server->port()};
      keys.set("place", to_bytes(cat(hosted.place.port, " ", address)));
      return hosted;
    }
    const std::vector<std::uint8_t> bytes = keys.get("place");
    const std::string place(bytes.begin(), bytes.end());
    hosted.place = {place.substr(place.find(' ') + 1), std::atoi(place.c_str())};
    return hosted;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception&) {
    throw CommError(cat("[comm] rank ", launch.rank, ": ", launch.launcher, "'s store at ", launch.master_address, ":",
                        launch.master_port, " did not tell within ",
                        fixed(std::chrono::duration<double>(deadline).count(), 1),
                        " s where rank 0 is. Look at rank 0's output, MASTER_ADDR and MASTER_PORT."));
  }
}

}  // namespace

HostedStore host_store(const Launch& launch, std::chrono::milliseconds deadline) {
  if (launch.store_is_hosted) return meet_in_launchers_store(launch, deadline);
  HostedStore hosted{.server = nullptr, .place = {launch.master_address, launch.master_port}};
  if (launch.rank == 0) hosted.server = std::make_unique<StoreServer>(launch.master_address, launch.master_port);
  return hosted;
}

}  // namespace octavo
