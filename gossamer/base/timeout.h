#pragma once
/// Seconds that a wait may take, as the durations that clocks count.

#include <chrono>
#include <string_view>

namespace gossamer {

/// Stands for "no limit": sums with what clocks show do not overflow.
inline constexpr std::chrono::nanoseconds kNoLimitOfTime = std::chrono::hours(50 * 365 * 24);

/// The duration of so many seconds. What is longer than kNoLimitOfTime, infinity included, becomes
/// that. Throws std::invalid_argument, with `place`, for NaN and for less than 0.
std::chrono::nanoseconds duration_of(double seconds, std::string_view place = "timeout");

/// Throws std::invalid_argument, with `place`, unless the number can be a timeout: more than 0.
/// Infinity means no limit.
void check_timeout(double seconds, std::string_view place);

}  // namespace gossamer
