#pragma once
/// The instruction sets that the kernels are compiled for, and which of them this process uses.

#include <string_view>

namespace gossamer {

/// `ref` is the scalar code of the `_ref.cpp` files; the others are the one fast loop, compiled for
/// x86-64-v3 and x86-64-v4, both with AES. All give identical bits.
enum class Isa { ref, avx2, avx512 };

std::string_view name_of(Isa isa);

/// Whether this machine can run `isa` and this build has it.
bool supports(Isa isa);

/// The best supported one for an empty word, else the one it names. Throws std::invalid_argument
/// for an unknown word, and for one that this machine cannot run.
Isa choose_isa(std::string_view word);

/// choose_isa of the environment variable GOSSAMER_ISA (ref, avx2, avx512), read at the first call
/// that succeeds and kept.
Isa active_isa();

/// name_of(active_isa()).
std::string_view isa_name();

}  // namespace gossamer
