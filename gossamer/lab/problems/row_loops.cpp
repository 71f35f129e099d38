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

/// to ← share · from + scale · a, in the same steps; `to` may be `from`.
[[gnu::always_inline]] inline void set_row(const float* a, double scale, const double* from,
                                           double share, std::size_t d, double* to) {
  std::size_t i = 0;
  for (; i + 8 <= d; i += 8) {
    Float8 narrow;
    Double8 sum;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&sum, from + i, sizeof sum);
    sum = share * sum + scale * __builtin_convertvector(narrow, Double8);
    __builtin_memcpy(to + i, &sum, sizeof sum);
  }
  if (d & 4U) {
    Float4 narrow;
    Double4 sum;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&sum, from + i, sizeof sum);
    sum = share * sum + scale * __builtin_convertvector(narrow, Double4);
    __builtin_memcpy(to + i, &sum, sizeof sum);
    i += 4;
  }
  if (d & 2U) {
    Float2 narrow;
    Double2 sum;
    __builtin_memcpy(&narrow, a + i, sizeof narrow);
    __builtin_memcpy(&sum, from + i, sizeof sum);
    sum = share * sum + scale * __builtin_convertvector(narrow, Double2);
    __builtin_memcpy(to + i, &sum, sizeof sum);
    i += 2;
  }
  if (d & 1U) to[i] = share * from[i] + scale * static_cast<double>(a[i]);
}

[[gnu::always_inline]] inline void dot_rows(const float* const* rows, const double* const* vectors,
                                            std::size_t count, std::size_t d, double* sums) {
  for (std::size_t k = 0; k < count; ++k) sums[k] = dot_row(rows[k], vectors[k], d);
}

[[gnu::always_inline]] inline void add_rows(const float* const* rows, const double* scales,
                                            std::size_t count, std::size_t d, double* const* to) {
  for (std::size_t k = 0; k < count; ++k) set_row(rows[k], scales[k], to[k], 1, d, to[k]);
}

[[gnu::always_inline]] inline void set_rows(const float* const* rows, const double* scales,
                                            const double* const* vectors, double share,
                                            std::size_t count, std::size_t d, double* const* to) {
  for (std::size_t k = 0; k < count; ++k) set_row(rows[k], scales[k], vectors[k], share, d, to[k]);
}

// The loops of an instruction set, `target` being how its functions are declared.
#define GOSSAMER_ROW_LOOPS(name, target)                                                    \
  target void dots_##name(const float* const* rows, const double* const* vectors,           \
                          std::size_t count, std::size_t d, double* sums) {                 \
    dot_rows(rows, vectors, count, d, sums);                                                \
  }                                                                                         \
  target void add_##name(const float* const* rows, const double* scales, std::size_t count, \
                         std::size_t d, double* const* to) {                                \
    add_rows(rows, scales, count, d, to);                                                   \
  }                                                                                         \
  target void set_##name(const float* const* rows, const double* scales,                    \
                         const double* const* vectors, double share, std::size_t count,     \
                         std::size_t d, double* const* to) {                                \
    set_rows(rows, scales, vectors, share, count, d, to);                                   \
  }                                                                                         \
  constexpr RowLoops k##name { dots_##name, add_##name, set_##name }

GOSSAMER_ROW_LOOPS(anywhere, );

#if defined(__x86_64__)

GOSSAMER_ROW_LOOPS(avx2, [[gnu::target("arch=x86-64-v3")]]);
GOSSAMER_ROW_LOOPS(avx512, [[gnu::target("arch=x86-64-v4")]]);

#else

constexpr RowLoops kavx2 = kanywhere;
constexpr RowLoops kavx512 = kanywhere;

#endif

}  // namespace

const RowLoops& row_loops() {
  switch (active_isa()) {
    case Isa::ref:
      return kanywhere;
    case Isa::avx2:
      return kavx2;
    case Isa::avx512:
      return kavx512;
  }
  __builtin_unreachable();
}

}  // namespace gossamer
