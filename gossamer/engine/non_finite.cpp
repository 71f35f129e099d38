#include "gossamer/engine/non_finite.h"

#include "gossamer/base/errors.h"
#include "gossamer/engine/elements.h"

namespace gossamer {

void refuse_non_finite(const std::string& name, int rank, std::int64_t step, double value) {
  throw NonFiniteGradient(
      to_string({.place = "engine",
                 .what = "the gradient of " + name + " on worker " + std::to_string(rank) +
                         " in step " + std::to_string(step) + " must be finite",
                 .got = std::to_string(value),
                 .remedy = "lower lr, clip the gradients, or look at the data of that step"}));
}

void require_finite(std::span<const std::byte> payload, Codec codec, DType dtype, int peer) {
  if (elements::are_finite(dtype, codec, payload)) return;
  const std::string worker = "worker " + std::to_string(peer);
  throw NonFinitePayload(
      to_string({.place = "engine",
                 .what = "the parameters that " + worker + " sent must be finite",
                 .got = "nan or inf",
                 .remedy = "look at what " + worker +
                           " does between its steps; check_payloads off mixes with them"}));
}

}  // namespace gossamer
