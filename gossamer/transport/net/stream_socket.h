#pragma once
/// TCP sockets as net uses them: never blocking, closed on exec.

#include <optional>
#include <string>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/receive_window.h"

namespace gossamer {

/// An IPv4 or IPv6 address in numbers, and a port.
struct StreamAddress {
  std::string host;
  int port = 0;
};

struct StreamListener {
  Descriptor socket;
  StreamAddress address;
};

/// From the first to the last; {0, 0}: whichever the system gives.
struct PortRange {
  int first = 0;
  int last = 0;
};

/// Of GOSSAMER_PORTS, as in "40000-40100" or "40000": what a firewall lets through. Throws
/// std::invalid_argument for anything else; null: any.
PortRange ports_of_user(const char* words);

/// Listens on one address, never on all of the machine's. Throws std::invalid_argument for what is
/// no such address, IoError where the machine does not have it.
StreamListener listen_for_streams(const std::string& host, const PortRange& ports = {});
/// Begins to connect; an empty descriptor where that cannot succeed.
Descriptor connect_stream(const StreamAddress& address);
/// The next that connects; an empty descriptor without one.
Descriptor accept_stream(const Descriptor& listener);
/// The address at the other end, in numbers; empty where the system does not say.
std::string host_of_peer(int socket);
/// Over a way that is short enough, has the system keep few bytes under way, which stay in the
/// caches then; false where it is not, or not known yet.
bool fit_buffer(int socket);
/// What the system knows of the way to the other end.
Way way_of(int socket);
/// From now on no more is to be under way to this end; null: as much as the system likes.
void limit_window(int socket, std::optional<std::size_t> bytes);
/// Bytes that the other end has not acknowledged yet.
int unacknowledged_bytes(int socket);

}  // namespace gossamer
