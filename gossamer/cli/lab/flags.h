#pragma once
/// Flags that the commands of `gossamer lab` have in common.

#include <CLI/CLI.hpp>
#include <cstdint>

namespace gossamer {

/// Adds --threads, as many as there are cores where it is not given, and --seed.
void add_threads_and_seed(CLI::App& app, int& threads, std::uint64_t& seed);

}  // namespace gossamer
