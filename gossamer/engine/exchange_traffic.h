#pragma once
/// Traffic in which everybody's payloads are waited for: an Exchange for each payload.

#include <memory>

#include "gossamer/engine/bucket_traffic.h"
#include "gossamer/engine/exchange_runner.h"

namespace gossamer {

/// Of one bucket; its state, the runner and `lost`, which may be null, must outlive it.
std::unique_ptr<BucketTraffic> make_exchange_traffic(const BucketState& state,
                                                     const EngineOptions& options,
                                                     ExchangeRunner& runner, LostPeers* lost);

}  // namespace gossamer
