#pragma once
/// Whether what a peer sent may be mixed with.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gossamer/base/codec.h"
#include "gossamer/base/dtype.h"

namespace gossamer {

/// Parameters of `peer`, `codec` being fp32 where they are not coded. Throws NonFinitePayload,
/// which names the peer, where one of them is not finite: it would spread over all workers, and
/// each of these would look for the fault at home.
void require_finite(std::span<const std::byte> payload, Codec codec, DType dtype, int peer);

}  // namespace gossamer
