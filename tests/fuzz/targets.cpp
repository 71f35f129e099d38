#include "tests/fuzz/targets.h"

namespace gossamer {

bool fuzz_acceptor(std::span<const std::byte> bytes);
bool fuzz_cluster(std::span<const std::byte> bytes);
bool fuzz_decode_image(std::span<const std::byte> bytes);
bool fuzz_endpoint(std::span<const std::byte> bytes);
bool fuzz_forecast(std::span<const std::byte> bytes);
bool fuzz_handshake(std::span<const std::byte> bytes);
bool fuzz_idx(std::span<const std::byte> bytes);
bool fuzz_images(std::span<const std::byte> bytes);
bool fuzz_json(std::span<const std::byte> bytes);
bool fuzz_lab_method(std::span<const std::byte> bytes);
bool fuzz_launcher_env(std::span<const std::byte> bytes);
bool fuzz_launchers(std::span<const std::byte> bytes);
bool fuzz_local_wire(std::span<const std::byte> bytes);
bool fuzz_manifest(std::span<const std::byte> bytes);
bool fuzz_method(std::span<const std::byte> bytes);
bool fuzz_options(std::span<const std::byte> bytes);
bool fuzz_pairs(std::span<const std::byte> bytes);
bool fuzz_recipe(std::span<const std::byte> bytes);
bool fuzz_safetensors(std::span<const std::byte> bytes);
bool fuzz_schedule_file(std::span<const std::byte> bytes);
bool fuzz_stream(std::span<const std::byte> bytes);
bool fuzz_stream_wire(std::span<const std::byte> bytes);
bool fuzz_tls(std::span<const std::byte> bytes);
bool fuzz_toml(std::span<const std::byte> bytes);
bool fuzz_units(std::span<const std::byte> bytes);
bool fuzz_vocabulary(std::span<const std::byte> bytes);
bool fuzz_workload(std::span<const std::byte> bytes);

namespace {

constexpr FuzzTarget kTargets[] = {
    {"acceptor", fuzz_acceptor},
    {"cluster", fuzz_cluster},
    {"decode_image", fuzz_decode_image},
    {"endpoint", fuzz_endpoint},
    {"forecast", fuzz_forecast},
    {"handshake", fuzz_handshake},
    {"idx", fuzz_idx},
    {"images", fuzz_images},
    {"json", fuzz_json},
    {"lab_method", fuzz_lab_method},
    {"launcher_env", fuzz_launcher_env},
    {"launchers", fuzz_launchers},
    {"local_wire", fuzz_local_wire},
    {"manifest", fuzz_manifest},
    {"method", fuzz_method},
    {"options", fuzz_options},
    {"pairs", fuzz_pairs},
    {"recipe", fuzz_recipe},
    {"safetensors", fuzz_safetensors},
    {"schedule_file", fuzz_schedule_file},
    {"stream", fuzz_stream},
    {"stream_wire", fuzz_stream_wire},
    {"tls", fuzz_tls},
    {"toml", fuzz_toml},
    {"units", fuzz_units},
    {"vocabulary", fuzz_vocabulary},
    {"workload", fuzz_workload},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

}  // namespace gossamer
