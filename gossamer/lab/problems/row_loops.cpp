#include "gossamer/lab/problems/row_loops.h"

#include "gossamer/kernels/isa.h"

namespace gossamer {
namespace {

// Vector types, because the compiler may not reorder a sum.
using Double2 [[gnu::vector_size(16)]] = double;
using Double4 [[gnu::vector_size(32)]] = double;
using Double8 [[gnu::vector_size(64)]] = double;
using Float2 [[gnu::vector_size(8)]] = float;
using Float4 [[gnu::vector_size(16)]] = float;
using Float8 [[gnu::vector_size(32)]] = float;

/// One row's product, in steps of 8, 4, 2 and 1. What has no vectors that wide takes several.
[[gnu::always_inline]] inline double dot_row(const float* a, const double* x, std::size_t d) {
  Double8 sum8 = {};
  std::size_t i = 0;
  for (; i + 8 <= d; i += 8) {
    Float8 narrow;
    Double8 other;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&other, x + i, sizeof other);
    sum8 += __builtin_convertvector(narrow, Double8) * other;
  }
  Double4 sum4 = __builtin_shufflevector(sum8, sum8, 0, 1, 2, 3) +
                 __builtin_shufflevector(sum8, sum8, 4, 5, 6, 7);
  if (d & 4U) {
    Float4 narrow;
    Double4 other;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&other, x + i, sizeof other);
    sum4 += __builtin_convertvector(narrow, Double4) * other;
    i += 4;
  }
  Double2 sum2 =
      __builtin_shufflevector(sum4, sum4, 0, 1) + __builtin_shufflevector(sum4, sum4, 2, 3);
  if (d & 2U) {
    Float2 narrow;
    Double2 other;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&other, x + i, sizeof other);
    sum2 += __builtin_convertvector(narrow, Double2) * other;
    i += 2;
  }
  double sum = sum2[0] + sum2[1];
  if (d & 1U) sum += static_cast<double>(a[i]) * x[i];
  return sum;
}

[[gnu::always_inline]] inline void add_row(const float* a, double scale, std::size_t d,
                                           double* to) {
  std::size_t i = 0;
  for (; i + 8 <= d; i += 8) {
    Float8 narrow;
    Double8 sum;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&sum, to + i, sizeof sum);
    sum += scale * __builtin_convertvector(narrow, Double8);
    __builtin_memcpy(to + i, &sum, sizeof sum);
  }
  if (d & 4U) {
    Float4 narrow;
    Double4 sum;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&sum, to + i, sizeof sum);
    sum += scale * __builtin_convertvector(narrow, Double4);
    __builtin_memcpy(to + i, &sum, sizeof sum);
    i += 4;
  }
  if (d & 2U) {
    Float2 narrow;
    Double2 sum;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&sum, to + i, sizeof sum);
    sum += scale * __builtin_convertvector(narrow, Double2);
    __builtin_memcpy(to + i, &sum, sizeof sum);
    i += 2;
  }
  if (d & 1U) to[i] += scale * static_cast<double>(a[i]);
}

[[gnu::always_inline]] inline void dot_rows(const float* const* rows, const double* const* vectors,
                                            std::size_t count, std::size_t d, double* sums) {
  for (std::size_t k = 0; k < count; ++k) sums[k] = dot_row(rows[k], vectors[k], d);
}

[[gnu::always_inline]] inline void add_rows(const float* const* rows, const double* scales,
                                            std::size_t count, std::size_t d, double* const* to) {
  for (std::size_t k = 0; k < count; ++k) add_row(rows[k], scales[k], d, to[k]);
}

void dots_anywhere(const float* const* rows, const double* const* vectors, std::size_t count,
                   std::size_t d, double* sums) {
  dot_rows(rows, vectors, count, d, sums);
}
void add_anywhere(const float* const* rows, const double* scales, std::size_t count, std::size_t d,
                  double* const* to) {
  add_rows(rows, scales, count, d, to);
}
constexpr RowLoops kAnywhere{dots_anywhere, add_anywhere};

#if defined(__x86_64__)

[[gnu::target("arch=x86-64-v3")]] void dots_avx2(const float* const* rows,
                                                 const double* const* vectors, std::size_t count,
                                                 std::size_t d, double* sums) {
  dot_rows(rows, vectors, count, d, sums);
}
[[gnu::target("arch=x86-64-v3")]] void add_avx2(const float* const* rows, const double* scales,
                                                std::size_t count, std::size_t d,
                                                double* const* to) {
  add_rows(rows, scales, count, d, to);
}
constexpr RowLoops kAvx2{dots_avx2, add_avx2};

[[gnu::target("arch=x86-64-v4")]] void dots_avx512(const float* const* rows,
                                                   const double* const* vectors, std::size_t count,
                                                   std::size_t d, double* sums) {
  dot_rows(rows, vectors, count, d, sums);
}
[[gnu::target("arch=x86-64-v4")]] void add_avx512(const float* const* rows, const double* scales,
                                                  std::size_t count, std::size_t d,
                                                  double* const* to) {
  add_rows(rows, scales, count, d, to);
}
constexpr RowLoops kAvx512{dots_avx512, add_avx512};

#else

constexpr RowLoops kAvx2 = kAnywhere;
constexpr RowLoops kAvx512 = kAnywhere;

#endif

}  // namespace

const RowLoops& row_loops() {
  switch (active_isa()) {
    case Isa::ref:
      return kAnywhere;
    case Isa::avx2:
      return kAvx2;
    case Isa::avx512:
      return kAvx512;
  }
  __builtin_unreachable();
}

}  // namespace gossamer
