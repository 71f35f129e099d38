#pragma once
/// Whether an engine makes use of the second memory of a bucket; see Note [Two memories].

#include <vector>

#include "gossamer/engine/options.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Whether an engine with these options would make use of Bucket::spare. Where the transport lends
/// SharedMemory only, x and spare must lie in it, or the sender copies.
bool wants_spares(const EngineOptions& options, const Transport& transport);

/// Whether these buckets have spares that it makes use of.
bool can_alternate(const EngineOptions& options, const std::vector<Bucket>& buckets);

}  // namespace gossamer
