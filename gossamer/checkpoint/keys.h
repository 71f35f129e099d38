#pragma once
/// The names in a worker's file. Everything is found by the name of its parameter, never by a
/// number, so that an optimizer may have its parameters in another order at the next start.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gossamer {

/// The number of updates beside an optimizer's vectors: a scalar of F32, as in torch.
inline constexpr std::string_view kUpdates = "step";

/// The key of the header's metadata whose text is a JSON document about the tensors; see
/// docs/checkpoint.md.
inline constexpr std::string_view kDocument = "document";

/// What all keys of patterns begin with.
inline constexpr std::string_view kPatternPrefix = "pattern/";

/// "parameter/NAME": the values, in shape and dtype of the model.
std::string parameter_key(std::string_view name);

/// "buffer/NAME".
std::string buffer_key(std::string_view name);

/// "mixed/NAME": what travels of a parameter that is mixed in a wider dtype than its own.
std::string mixed_key(std::string_view name);

/// "beside/NAME": a tensor that is mixed beside the parameters.
std::string beside_key(std::string_view name);

/// "optimizer/NAME/VECTOR", with torch's word for the vector: exp_avg, exp_avg_sq, momentum_buffer,
/// accumulated, and kUpdates. Without a vector: what all keys of the parameter begin with.
std::string optimizer_key(std::string_view name, std::string_view vector = {});

/// "pattern/PATTERN/VECTOR/NAME".
std::string pattern_key(std::string_view pattern, std::string_view vector, std::string_view name);

/// "group/I": what all keys of a group's settings begin with.
std::string group_key(int group);

/// A line of the manifest's `model`: "parameter 'NAME' [2, 3] float32". `kind` is "parameter" or
/// "buffer", `dtype` torch's word.
std::string model_line(std::string_view kind, std::string_view name,
                       std::span<const std::int64_t> shape, std::string_view dtype);

}  // namespace gossamer
