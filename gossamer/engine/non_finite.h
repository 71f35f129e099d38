#pragma once
/// Numbers that are not finite: gradients that may not be stepped with, payloads that may not be
/// mixed with.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "gossamer/base/codec.h"
#include "gossamer/base/dtype.h"

namespace gossamer {

/// A gradient that is not finite: the run has diverged or its data is broken.
class NonFiniteGradient : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// Parameters of another worker that are not finite.
class NonFinitePayload : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws NonFiniteGradient; `value` is an element of the gradient of `name`.
[[noreturn]] void refuse_non_finite(const std::string& name, int rank, std::int64_t step,
                                    double value);

/// Parameters of `peer`, `codec` being fp32 where they are not coded. Throws NonFinitePayload,
/// which names the peer, where one of them is not finite: it would spread over all workers, and
/// each of these would look for the fault at home.
void require_finite(std::span<const std::byte> payload, Codec codec, DType dtype, int peer);

}  // namespace gossamer
