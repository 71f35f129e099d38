#pragma once
/// Masters: float32 copies of tensors in half precision, which are mixed, stepped and kept.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace gossamer {

/// Note [Masters]: a tensor of bfloat16 or float16 has a float32 copy, its master, that lasts from
/// step to step. It is what travels and what fused optimizers step, so a change of
/// less than half a unit in the tensor's last place is not lost. After each step the tensor is
/// written anew, rounded at random: its mean is the master. Before each step the master takes over,
/// element by element, what the owner has changed since: m ← m + (tensor − written), so that an own
/// step or an edit by hand counts, and the mix below the tensor's last place stays. Where the
/// change is more than a quarter of what was written, it is a new value and not a step: m ← tensor,
/// exactly, so that zeros stay zeros. Memory per parameter: 4 bytes for the master, 2 for what was
/// written. Both lie where the tensor is mixed, which may be a device; the bits are the same there.
struct Master {
  at::Tensor values;   ///< float32, laid out as the tensor where that is dense
  at::Tensor written;  ///< of the tensor's dtype, laid out as `values`; undefined: no master
};

/// Whether a tensor, complex ones as real pairs, has one.
bool wants_master(const at::Tensor& tensor);

/// One with the tensor's values, in the memory of `device`: the tensor's own, or the CPU.
Master make_master(const at::Tensor& tensor, const at::Device& device);

/// Takes over what the owner of the tensor has changed since it was written.
void take_changes(const at::Tensor& tensor, Master& master);

/// Of one tensor in one step of one worker: equal arguments, equal roundings, on every machine.
std::uint64_t rounding_key(std::string_view name, int worker, std::int64_t step);

/// Writes the master, rounded at random with `key`, see round_at_random().
void write_at_random(Master& master, const at::Tensor& tensor, std::uint64_t key);

}  // namespace gossamer
