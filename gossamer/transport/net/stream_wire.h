#pragma once
/// The wire to a worker of another host.

#include <memory>

#include "gossamer/transport/net/stream_socket.h"
#include "gossamer/transport/net/tls.h"
#include "gossamer/transport/net/wire.h"

namespace gossamer {

/// Over TCP, as Note [Receivers are ready] says, to this address; over TLS where there are keys.
///
/// Note [Until they have met]: a connection that ends before the peer has proved its identity is
/// made again, for half a minute: the link may have been down for a moment, or one of the two has
/// stood still for longer than unverified connections may. The peer knows nothing of such a
/// connection. If it cannot be made at all, or TLS finds that the other end is not of this job, the
/// whole edge ends, so that the peer does not wait for what this worker would send over it.
MakeWire stream_wire(StreamAddress address, std::shared_ptr<const TlsKeys> keys);

}  // namespace gossamer
