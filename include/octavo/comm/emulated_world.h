// A slower world: every transfer takes as long as a link of given bandwidth and latency would need, so that what hides
// behind computation, and what does not, can be shown on a machine whose ranks share memory.
//
// The model. Every rank has one send queue, shared by all communicators of its world, like one stream of transfers:
//   - A transfer joins the queue when it is posted and is served in that order. It occupies the queue for its logical
//     bytes (trace/cost.h: the mean that a rank sends, also where the inner world reads in place or lends) over the
//     bandwidth.
//   - It begins when the one before it has left and it is matched: all ranks of the group have posted it.
//   - Then it takes the latency times the steps of the direct algorithm, which does not occupy the queue.
//   - wait() returns when the inner operation is done and that time has come.
// When a transfer was matched is known when it is waited for. Until then those behind it count it as matched when this
// rank posted it; a wait fixes the place of the transfer that it waits for, and one that turns out to be matched later
// than assumed moves behind whatever has been fixed in its way. So waiting in the order of posting is exact, and in any
// order no two transfers of a rank are on the link at once, no wait waits for another transfer's peers, and equal times
// of posting and matching give equal results.
//
// Where the inner world learns of the match only later (gloo), a transfer counts as matched when this rank posted it.
//
// What it does not model: a rank's own queue decides when a collective is over for it, not its peers' queues. A recv
// occupies no queue and knows nothing of its sender's; it takes what its message needs on a free link: bytes over
// bandwidth plus latency from the match. A barrier takes the latency of its steps. Memory is held as the inner world
// holds it. Ranks that make progress only inside calls (threads) make none while they wait for the link.
#pragma once

#include <memory>
#include <string>

#include "octavo/comm/world.h"

namespace octavo {

struct LinkSpec {
  double bytes_per_second;  // of one rank's queue, > 0
  Seconds latency;          // of one step, >= 0

  std::string to_string() const;  // "5.0 GB/s, 20 us"
};

/// "5GB/s,20us": bandwidth in B, kB, MB, GB, TB (powers of ten) or KiB, MiB, GiB, TiB per second, latency in s, ms, us
/// or ns. Case and spaces do not matter. Throws UsageError.
LinkSpec parse_link(const std::string& text);

/// `inner` behind the link, for one rank; results and failures are inner's. It has a ledger of its own, with the bytes
/// that inner books and the emulated times (`done` is when the link lets go, `waited` from the call of wait() to that);
/// inner's ledger is emptied as it goes. `inner` must outlive it; what is moved past the link, through inner itself, is
/// not delayed. Throws UsageError for a
/// bandwidth or latency out of range and for the "record" backend, which has no clock.
std::unique_ptr<World> make_emulated_world(World& inner, const LinkSpec& link);

/// How long the queue of the rank of `ledger` was busy since the ledger's last reset: its traffic, in seconds.
Seconds busy_seconds(const LinkSpec& link, const Ledger& ledger);

}  // namespace octavo
