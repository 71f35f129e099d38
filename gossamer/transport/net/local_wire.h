#pragma once
/// The wire to a worker of the same host, which reads payloads in shared memory.

#include <string>

#include "gossamer/transport/net/wire.h"

namespace gossamer {

/// By packets over local sockets, as Note [Offers] says; the peer listens under this name.
MakeWire local_wire(std::string name);

}  // namespace gossamer
