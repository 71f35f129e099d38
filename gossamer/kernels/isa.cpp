#include "gossamer/kernels/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::array kIsas{Isa::avx512, Isa::avx2, Isa::ref};  // the best first
constexpr std::array<std::string_view, 3> kNames{"ref", "avx2", "avx512"};

#if defined(__x86_64__)
bool machine_has_aes() { return __builtin_cpu_supports("aes") != 0; }
bool machine_has_avx2() { return machine_has_aes() && __builtin_cpu_supports("x86-64-v3") != 0; }
bool machine_has_avx512() { return machine_has_aes() && __builtin_cpu_supports("x86-64-v4") != 0; }
#else
bool machine_has_avx2() { return false; }
bool machine_has_avx512() { return false; }
#endif

Isa best_isa() {
  for (const Isa isa : kIsas) {
    if (supports(isa)) return isa;
  }
  return Isa::ref;
}

}  // namespace

std::string_view name_of(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

bool supports(Isa isa) {
  switch (isa) {
    case Isa::ref:
      return true;
    case Isa::avx2:
      return machine_has_avx2();
    case Isa::avx512:
      return machine_has_avx512();
  }
  __builtin_unreachable();
}

Isa choose_isa(std::string_view word) {
  if (word.empty()) return best_isa();
  for (const Isa isa : kIsas) {
    if (word != name_of(isa)) continue;
    if (supports(isa)) return isa;
    fail_argument({.place = "kernels",
                   .what = "GOSSAMER_ISA names an instruction set that this machine lacks",
                   .got = std::string(word),
                   .remedy = "unset it, or use " + std::string(name_of(best_isa()))});
  }
  fail_unknown_name("kernels", "instruction set in GOSSAMER_ISA", word, kNames);
}

Isa active_isa() {
  static const Isa isa = [] {
    const char* word = std::getenv("GOSSAMER_ISA");
    return choose_isa(word == nullptr ? "" : word);
  }();
  return isa;
}

std::string_view isa_name() { return name_of(active_isa()); }

}  // namespace gossamer
