#pragma once
/// What averages of gradients are told.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gossamer/base/codec.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/recorder.h"
#include "gossamer/engine/seating.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/torch/tensors/replica.h"

namespace gossamer {

/// A leaf, with the name that messages call it by.
struct AveragedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Note [Stand-ins]: where autograd gives no gradient to a tensor itself, as of a shard, a leaf of
/// the same values stands for it. Its owner brings the stand-ins' `.grad` up to date when it is
/// asked to, takes over those that are new when a pass has ended, and says what arrives.
struct StandIns {
  std::function<void()> take = nullptr;  ///< before gradients are looked at
  std::function<void()> give = nullptr;  ///< when the means are in `.grad`
};

struct GradientOptions {
  std::int64_t bucket_bytes = std::int64_t{4} << 20;  ///< unless one tensor is larger
  Codec codec = Codec::fp32;     ///< of what crosses hosts; all-reduce loses what it leaves out
  Recorder* recorder = nullptr;  ///< is told of exchanges and waits; null: nobody is
  /// Gossip of gradients, g ← W g: the rounds that give the weights, of which the first step takes
  /// number `first_round`, and a bucket the one `b` later where they are staggered. Nothing: means
  /// are over all workers.
  std::optional<Schedule> rounds = std::nullopt;
  std::int64_t first_round = 0;
  bool staggers = false;
  const Seating* seated = nullptr;     ///< with `rounds`: see Averagers
  LostPeers* lost = nullptr;           ///< it goes on without those; null: each one is an error
  Collectives* collectives = nullptr;  ///< with `lost`: where means over all workers are settled
  ReplicaState replica = {};           ///< then: what one that comes back takes from another one
  /// Gradients may change until the pass ends, as DistributedDataParallel changes them: none leaves
  /// before that has been done.
  bool at_end = false;
  StandIns stand_ins = {};  ///< null: there are none
};

}  // namespace gossamer
