#pragma once
/// Rates, durations and sizes between text and numbers: "25Gbit/s", "200us", "4MiB".

#include <cstdint>
#include <string>
#include <string_view>

namespace gossamer {

/// Bytes per second from a number and a unit, in bits ("20Mbit/s") or bytes ("1.5GB/s"), or from
/// "unlimited" (infinity). k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of 1024. All three parsers
/// throw std::invalid_argument that names the accepted units; `place` opens its message.
double parse_rate(std::string_view text, std::string_view place = "units");

/// Seconds from "5ns", "200us", "1ms", "2s", "3min", "1.5h"; never negative.
double parse_duration(std::string_view text, std::string_view place = "units");

/// Bytes from "512B", "8MB", "4MiB"; a whole number of bytes.
std::int64_t parse_bytes(std::string_view text, std::string_view place = "units");

/// Three significant digits and a decimal unit: "8 MB", "1.54 kB".
std::string format_bytes(double bytes);

/// In bits, as links are sold: 2.5e6 → "20 Mbit/s"; infinity → "unlimited".
std::string format_rate(double bytes_per_s);

/// The fewest digits from which `value` can be read back.
std::string shortest(double value);

/// "200 us", "1.5 s"; from two minutes on "2 min 5 s", from an hour on "1 h 3 min".
std::string format_duration(double seconds);

}  // namespace gossamer
