#include "gossamer/kernels/kernel_table.h"

#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/kernels/digest_tiles.h"
#include "gossamer/kernels/ref.h"
#include "gossamer/kernels/tables.h"

namespace gossamer {
namespace {

/// The digests of the scalar kernels.
struct Plain {
  using Block [[gnu::vector_size(16)]] = long long;
  using Words [[gnu::vector_size(16)]] = unsigned long long;

  static Block scramble(Block a, Block b) {
    Words words = Words(a ^ b) * 0x9e3779b97f4a7c15U;
    words ^= words >> 29;
    const Words crossed{words[0] + words[1], words[0]};
    return Block(crossed * 0xbf58476d1ce4e5b9U);
  }
};

/// A scalar pass, tile by tile without the first source where x is what its digest says.
template <auto Pass, class T, class... Step>
double ref_pass(Range range, const MixArgs<T>& mix, const Step&... step) {
  if (mix.digests == nullptr) return Pass(range, mix, step...);
  const MixArgs<T> rest = without_first(mix);
  double distance = 0;
  for_each_digest(range, mix.digests, [&](Range tile, Digest digest) {
    const bool is_same = digest_of<Plain>(tile, mix.x) == digest;
    distance += Pass(tile, is_same ? rest : mix, step...);
  });
  return distance;
}

template <class T>
void ref_copy_digested(Range range, const T* x, T* to, Digest* digests) {
  for_each_digest(range, digests,
                  [&](Range tile, Digest& digest) { digest = digest_of<Plain>(tile, x); });
  ref::copy(to + range.begin, x + range.begin, (range.end - range.begin) * sizeof(T));
}

template <class T>
constexpr KernelTable<T> kRefTable{
    .mix_only = ref_pass<ref::mix_only<T>, T>,
    .mix_sgd = ref_pass<ref::mix_sgd<T>, T, SgdArgs<T>>,
    .mix_momentum = ref_pass<ref::mix_momentum<T>, T, MomentumArgs<T>>,
    .mix_adam = ref_pass<ref::mix_adam<T>, T, AdamArgs<T>>,
    .mix_accum_adam = ref_pass<ref::mix_accum_adam<T>, T, AccumAdamArgs<T>>,
    .copy_digested = ref_copy_digested<T>,
    .sum_into = ref::sum_into<T>,
    .sum_squares = ref::sum_squares<T>,
    .distance_squares = ref::distance_squares<T>,
    .all_finite = ref::all_finite<T>,
    .codecs = {{},
               {ref::encode_bf16<T>, ref::decode_bf16<T>, ref::decode_add_bf16<T>},
               {ref::encode_int8<T>, ref::decode_int8<T>, ref::decode_add_int8<T>}},
};

constexpr RoundingKernels kRefRounding{.bf16 = ref::round_bf16, .fp16 = ref::round_fp16};

const KernelTable<float>* floats(Isa isa) {
  switch (isa) {
    case Isa::ref:
      return &kRefTable<float>;
    case Isa::avx2:
      return kAvx2Floats;
    case Isa::avx512:
      return kAvx512Floats;
  }
  __builtin_unreachable();
}

const KernelTable<double>* doubles(Isa isa) {
  switch (isa) {
    case Isa::ref:
      return &kRefTable<double>;
    case Isa::avx2:
      return kAvx2Doubles;
    case Isa::avx512:
      return kAvx512Doubles;
  }
  __builtin_unreachable();
}

void require_support(Isa isa) {
  if (supports(isa)) return;
  fail_argument({.place = "kernels",
                 .what = "this machine lacks the instruction set",
                 .got = std::string(name_of(isa)),
                 .remedy = "ask supports() first"});
}

}  // namespace

template <>
const KernelTable<float>& kernel_table<float>(Isa isa) {
  require_support(isa);
  return *floats(isa);
}

template <>
const KernelTable<double>& kernel_table<double>(Isa isa) {
  require_support(isa);
  return *doubles(isa);
}

CopyFunction copy_function(Isa isa) {
  require_support(isa);
  switch (isa) {
    case Isa::ref:
      return ref::copy;
    case Isa::avx2:
      return kAvx2Copy;
    case Isa::avx512:
      return kAvx512Copy;
  }
  __builtin_unreachable();
}

const RoundingKernels& rounding_kernels(Isa isa) {
  require_support(isa);
  switch (isa) {
    case Isa::ref:
      return kRefRounding;
    case Isa::avx2:
      return kAvx2Rounding;
    case Isa::avx512:
      return kAvx512Rounding;
  }
  __builtin_unreachable();
}

template <class T>
const KernelTable<T>& active_kernels() {
  static const KernelTable<T>& table = kernel_table<T>(active_isa());
  return table;
}

template const KernelTable<float>& active_kernels();
template const KernelTable<double>& active_kernels();

}  // namespace gossamer
