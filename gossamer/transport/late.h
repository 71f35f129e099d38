#pragma once
/// The error of a deadline that has passed above the transport.

#include <string>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Throws TransportError. `peer`: with whom the operation is, or this worker itself where it waits
/// for nobody else; see Transport::unheard().
[[noreturn]] void fail_late(const Transport& transport, int peer, const std::string& operation,
                            double elapsed_s, const std::string& why);

}  // namespace gossamer
