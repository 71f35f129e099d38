#pragma once
/// Payloads in fewer bytes: rounds a vector to a codec, keeps what the rounding left out, and reads
/// coded elements back. One pass over memory each; all instruction sets give the same bits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gossamer/base/codec.h"

namespace gossamer {

/// Note [Who keeps the residual]: a worker that sends q = C(x) in place of x mixes in the
/// difference form, x + Σ_j w_ij (dec(q_j) − dec(q_i)): what the coding left out, x − dec(q), stays
/// with its owner. So where rows and columns of W sum to 1 the mean over the workers stays as it
/// is, whatever C does. A sum that went on coded is put right in the same way, by a `kept` that is
/// added up in place of x. `error` makes C right in the sum over the rounds.
///
/// `kept` is x's memory or apart from it; `coded` and `error` are apart from everything.
template <class T>
struct EncodeArgs {
  std::span<const T> x;
  std::span<std::byte> coded;  ///< coded_bytes(codec, x.size(), dtype_of<T>()), at any alignment
  T* kept = nullptr;           ///< if set, x.size() elements: own·x + keep·(x − dec(q))
  double own = 1;
  double keep = 0;
  T* error = nullptr;  ///< if set, x.size() elements: what the last call left out, then this one
};

/// v = x + error, q = C(v) into `coded`, error ← v − dec(q), kept ← own·x + keep·(x − dec(q)).
/// Doubles are rounded to float before they are coded, ties go to even.
/// - bf16: |dec − v| ≤ |v|/257 for normal numbers; what is too large becomes infinite, NaN stays.
/// - int8: scale = max|v| of the block · (1/127), and not below the smallest normal float;
///   |dec − v| ≤ scale/2 and a rounding; zeros stay zeros (−0 becomes 0). If an element of a block
///   is not a finite float, the scale is NaN and so is all that it decodes to.
/// Throws std::invalid_argument when `coded` has another size.
template <class T>
void encode(Codec codec, const EncodeArgs<T>& args);

/// Whether no element of a coded vector decodes to infinity or NaN. Not for fp32.
bool decodes_to_finite(Codec codec, std::span<const std::byte> coded);

/// into ← elements [offset, offset + into.size()) of a coded vector, of which `coded` holds at
/// least the bytes up to there. Any offset, also inside a block. Throws std::invalid_argument when
/// `coded` ends before.
template <class T>
void decode(Codec codec, std::span<const std::byte> coded, std::int64_t offset, std::span<T> into);

/// into ← into + what decode would write there. One pass, so that sums of coded vectors need no
/// room for decoded ones.
template <class T>
void decode_add(Codec codec, std::span<const std::byte> coded, std::int64_t offset,
                std::span<T> into);

}  // namespace gossamer
