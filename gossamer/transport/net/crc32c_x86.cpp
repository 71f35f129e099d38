#include "gossamer/transport/net/crc32c_x86.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <cstring>

#include "gossamer/transport/net/crc32c_poly.h"

#define GOSSAMER_SSE42 __attribute__((target("sse4.2,pclmul")))
#define GOSSAMER_AVX512 __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

/// Note [Folding]: a register of 128 bits, a(x) x^64 + b(x) with a in the half that comes first,
/// may be replaced by a(x) (x^(64+d) mod P) + b(x) (x^d mod P) added d bits further on: both leave
/// the same remainder. A carry-less product of reflected halves is one bit short, hence the powers
/// one lower. What is left in the end is a short message with the same checksum. (Gopal et al.,
/// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.)
namespace gossamer::crc32c_x86 {
namespace {

constexpr long long half_of(int power) {
  return static_cast<long long>(static_cast<std::uint64_t>(crc32c_power(power)) << 32U);
}

GOSSAMER_SSE42 std::uint32_t run_by_crc32(std::uint32_t state, std::span<const std::byte> bytes) {
  std::uint64_t wide = state;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<std::uint32_t>(wide);
  for (; i < bytes.size(); ++i) {
    state = _mm_crc32_u8(state, std::to_integer<unsigned char>(bytes[i]));
  }
  return state;
}

template <int kBits>
GOSSAMER_SSE42 __m128i fold(__m128i sum, __m128i next) {
  const __m128i powers = _mm_set_epi64x(half_of(kBits - 1), half_of(kBits + 63));
  const __m128i both = _mm_xor_si128(_mm_clmulepi64_si128(sum, powers, 0x00),
                                     _mm_clmulepi64_si128(sum, powers, 0x11));
  return _mm_xor_si128(both, next);
}

template <int kBits>
GOSSAMER_AVX512 __m512i fold(__m512i sum, __m512i next) {
  constexpr long long kFirst = half_of(kBits + 63);
  constexpr long long kSecond = half_of(kBits - 1);
  const __m512i powers = _mm512_set4_epi64(kSecond, kFirst, kSecond, kFirst);
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, powers, 0x00),
                                   _mm512_clmulepi64_epi128(sum, powers, 0x11), next, kXorOfThree);
}

}  // namespace

bool has_pclmul() {
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
}

bool has_vpclmul() {
  return has_pclmul() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("vpclmulqdq") != 0;
}

GOSSAMER_SSE42 std::uint32_t run_by_pclmul(std::uint32_t state, std::span<const std::byte> bytes) {
  constexpr std::size_t kBlock = 64;
  if (bytes.size() < 2 * kBlock) return run_by_crc32(state, bytes);
  const auto load = [&](std::size_t at) GOSSAMER_SSE42 {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + at));
  };
  __m128i a = _mm_xor_si128(load(0), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(16);
  __m128i c = load(32);
  __m128i d = load(48);
  std::size_t i = kBlock;
  for (; i + kBlock <= bytes.size(); i += kBlock) {
    a = fold<512>(a, load(i));
    b = fold<512>(b, load(i + 16));
    c = fold<512>(c, load(i + 32));
    d = fold<512>(d, load(i + 48));
  }
  d = fold<128>(fold<128>(fold<128>(a, b), c), d);
  std::array<std::byte, sizeof(d)> left;
  std::memcpy(left.data(), &d, sizeof(d));
  return run_by_crc32(run_by_crc32(0, left), bytes.subspan(i));
}

GOSSAMER_AVX512 std::uint32_t run_by_vpclmul(std::uint32_t state,
                                             std::span<const std::byte> bytes) {
  constexpr std::size_t kBlock = 256;
  if (bytes.size() < 2 * kBlock) return run_by_pclmul(state, bytes);
  const auto load = [&](std::size_t at)
                        GOSSAMER_AVX512 { return _mm512_loadu_si512(bytes.data() + at); };
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i a = _mm512_xor_si512(load(0), start);
  __m512i b = load(64);
  __m512i c = load(128);
  __m512i d = load(192);
  std::size_t i = kBlock;
  for (; i + kBlock <= bytes.size(); i += kBlock) {
    a = fold<2048>(a, load(i));
    b = fold<2048>(b, load(i + 64));
    c = fold<2048>(c, load(i + 128));
    d = fold<2048>(d, load(i + 192));
  }
  d = fold<512>(fold<512>(fold<512>(a, b), c), d);
  std::array<std::byte, sizeof(d)> left;
  std::memcpy(left.data(), &d, sizeof(d));
  return run_by_crc32(run_by_crc32(0, left), bytes.subspan(i));
}

}  // namespace gossamer::crc32c_x86

#else

namespace gossamer::crc32c_x86 {

bool has_pclmul() { return false; }
bool has_vpclmul() { return false; }
std::uint32_t run_by_pclmul(std::uint32_t state, std::span<const std::byte>) { return state; }
std::uint32_t run_by_vpclmul(std::uint32_t state, std::span<const std::byte>) { return state; }

}  // namespace gossamer::crc32c_x86

#endif
