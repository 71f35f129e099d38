#include "tests/fuzz/targets.h"

namespace gossamer {

bool fuzz_handshake(std::span<const std::byte> bytes);
bool fuzz_manifest(std::span<const std::byte> bytes);
bool fuzz_stream(std::span<const std::byte> bytes);

namespace {

constexpr FuzzTarget kTargets[] = {
    {"handshake", fuzz_handshake},
    {"manifest", fuzz_manifest},
    {"stream", fuzz_stream},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

}  // namespace gossamer
