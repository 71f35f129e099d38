#include "gossamer/engine/payload_check.h"

#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/engine/options.h"
#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/codec.h"
#include "gossamer/kernels/finite.h"

namespace gossamer {

void require_finite(std::span<const std::byte> payload, Codec codec, DType dtype, int peer) {
  bool is_finite = true;
  if (codec != Codec::fp32) {
    is_finite = decodes_to_finite(codec, payload);
  } else {
    visit_dtype(dtype, [&]<class T>(T) {
      is_finite =
          all_finite<T>({reinterpret_cast<const T*>(payload.data()), payload.size() / sizeof(T)});
    });
  }
  if (is_finite) return;
  const std::string worker = "worker " + std::to_string(peer);
  throw NonFinitePayload(
      to_string({.place = "engine",
                 .what = "the parameters that " + worker + " sent must be finite",
                 .got = "nan or inf",
                 .remedy = "look at what " + worker +
                           " does between its steps; check_payloads off mixes with them"}));
}

}  // namespace gossamer
