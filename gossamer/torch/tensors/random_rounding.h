#pragma once
/// Float32 to half precision at random, so that what many roundings leave is the number itself.

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace gossamer {

/// Of one tensor in one step of one worker: equal arguments, equal roundings, on every machine.
std::uint64_t rounding_key(std::string_view name, int worker, std::int64_t step);

/// to[i] ← one of the two numbers of T around x[i], the upper one with probability
/// (x[i] − lower) / (upper − lower): the mean is x[i]. What T can represent stays as it is, so do
/// infinities and NaN; a finite number stays finite, at most the largest of T. T is c10::BFloat16,
/// exact for every x, or c10::Half, whose subnormals are off by at most 2⁻³⁷ in the mean. Equal
/// sizes; the memories are apart.
template <class T>
void round_at_random(std::span<const float> x, std::span<T> to, std::uint64_t key);

}  // namespace gossamer
