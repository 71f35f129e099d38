#include "gossamer/kernels/tables.h"

#if defined(__x86_64__)
#if !defined(__AVX2__)
#error "this file must be compiled with the options that gossamer/CMakeLists.txt sets for it"
#endif

#include <immintrin.h>

#include "gossamer/kernels/fast_table.h"
#include "gossamer/kernels/rounding_loops.h"

namespace gossamer {
namespace {

struct Stream256 {
  using Vector = __m256i;
  static void store(Vector* to, Vector value) { _mm256_stream_si256(to, value); }
  static void fence() { _mm_sfence(); }

  using Block = __m128i;
  static Block scramble(Block a, Block b) { return _mm_aesenc_si128(a, b); }
};

}  // namespace

const KernelTable<float>* const kAvx2Floats = &kFastTable<float, Stream256>;
const KernelTable<double>* const kAvx2Doubles = &kFastTable<double, Stream256>;
const CopyFunction kAvx2Copy = streaming_copy<Stream256>;
const RoundingKernels kAvx2Rounding{.bf16 = fast_round<bf16_code>, .fp16 = fast_round<fp16_code>};

}  // namespace gossamer

#else

namespace gossamer {
const KernelTable<float>* const kAvx2Floats = nullptr;
const KernelTable<double>* const kAvx2Doubles = nullptr;
const CopyFunction kAvx2Copy = nullptr;
const RoundingKernels kAvx2Rounding{};
}  // namespace gossamer

#endif
