#pragma once
/// Who uses which tags: the one place that gives out streams and numbers of calls.

#include <cstdint>
#include <limits>

#include "gossamer/algo/pass.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Streams]: exchanges that run beside each other over one transport differ in the stream of
/// their tags. Those of the engine's buckets are 0 and above, one for each payload; below are those
/// that others make, and last the averaged gradients, of which there may be any number.
namespace stream {

inline constexpr std::int32_t kCollectives = -1;
inline constexpr std::int32_t kPresence = -2;   ///< which gradients a worker has
inline constexpr std::int32_t kRows = -3;       ///< of sparse gradients
inline constexpr std::int32_t kRowValues = -4;  ///< the first; one below for each element type
inline constexpr std::int32_t kLastRowValues = -15;
inline constexpr std::int32_t kProbe = -16;
inline constexpr std::int32_t kGradients = -17;  ///< of bucket 0; below it those of the others
inline constexpr std::int32_t kRollCall = std::numeric_limits<std::int32_t>::min();
inline constexpr std::int32_t kStop = kRollCall + 1;  ///< who is told to stop, and when all do
static_assert(kNewcomers == kStop + 1);
inline constexpr std::int32_t kCouncil = kStop + 2;  ///< who takes part in a collective call
inline constexpr std::int32_t kLookout = kStop + 3;  ///< nothing: that a worker is there

constexpr std::int32_t of_payload(int bucket, std::size_t payload) {
  return bucket * static_cast<std::int32_t>(kMaxVectors) + static_cast<std::int32_t>(payload);
}

constexpr std::int32_t of_gradients(std::size_t bucket) {
  return kGradients - static_cast<std::int32_t>(bucket);
}

/// The bucket whose payload or gradients travel there; −1 where it is none's.
constexpr int bucket_of(std::int32_t stream) {
  if (stream >= 0) return stream / static_cast<std::int32_t>(kMaxVectors);
  return stream <= kGradients ? kGradients - stream : -1;
}

}  // namespace stream

/// Means that are settled have the number of their step and of their pass in it.
inline constexpr std::int64_t kPassesOfAStep = 1 << 16;  ///< at most

/// Collectives are numbered from 0 by those who make them on the way; a probe and a training run
/// that share a transport with others begin far from there.
inline constexpr std::int64_t kFirstCallOfProbe = std::int64_t{1} << 40;
inline constexpr std::int64_t kFirstCallOfTraining = std::int64_t{1} << 41;

}  // namespace gossamer
