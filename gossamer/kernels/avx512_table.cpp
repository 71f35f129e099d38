#include "gossamer/kernels/tables.h"

#if defined(__x86_64__)
#if !defined(__AVX512F__)
#error "this file must be compiled with the options that gossamer/CMakeLists.txt sets for it"
#endif

#include <immintrin.h>

#include "gossamer/kernels/fast_table.h"
#include "gossamer/kernels/rounding_loops.h"

namespace gossamer {
namespace {

struct Stream512 {
  using Vector = __m512i;
  static void store(Vector* to, Vector value) { _mm512_stream_si512(to, value); }
  static void fence() { _mm_sfence(); }

  using Block = __m128i;
  static Block scramble(Block a, Block b) { return _mm_aesenc_si128(a, b); }
};

}  // namespace

const KernelTable<float>* const kAvx512Floats = &kFastTable<float, Stream512>;
const KernelTable<double>* const kAvx512Doubles = &kFastTable<double, Stream512>;
const CopyFunction kAvx512Copy = streaming_copy<Stream512>;
const RoundingKernels kAvx512Rounding{.bf16 = fast_round<bf16_code>, .fp16 = fast_round<fp16_code>};

}  // namespace gossamer

#else

namespace gossamer {
const KernelTable<float>* const kAvx512Floats = nullptr;
const KernelTable<double>* const kAvx512Doubles = nullptr;
const CopyFunction kAvx512Copy = nullptr;
const RoundingKernels kAvx512Rounding{};
}  // namespace gossamer

#endif
