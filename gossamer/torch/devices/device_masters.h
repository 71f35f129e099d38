#pragma once
/// Masters in the memory of a device, see Note [Masters]: torch's operations with the bits of the
/// kernels.

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gossamer {

/// values ← what they are after the owner's change from `written` to `now`, and written ← now; all
/// dense and laid out alike. Queued in the stream that is current.
void take_changes_queued(const at::Tensor& now, const at::Tensor& written,
                         const at::Tensor& values);

/// written ← float32 `values` as BFloat16 or Half by round_at_random() with `key`, bit for bit.
/// Both dense and laid out alike. Queued likewise.
void round_queued(const at::Tensor& values, const at::Tensor& written, std::uint64_t key);

}  // namespace gossamer
