#include "gossamer/kernels/kernel_table.h"

#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/kernels/ref.h"
#include "gossamer/kernels/tables.h"

namespace gossamer {
namespace {

template <class T>
constexpr KernelTable<T> kRefTable{
    .mix_only = ref::mix_only<T>,
    .mix_sgd = ref::mix_sgd<T>,
    .mix_momentum = ref::mix_momentum<T>,
    .mix_adam = ref::mix_adam<T>,
    .mix_accum_adam = ref::mix_accum_adam<T>,
    .sum_into = ref::sum_into<T>,
    .sum_squares = ref::sum_squares<T>,
    .distance_squares = ref::distance_squares<T>,
    .all_finite = ref::all_finite<T>,
    .encode_bf16 = ref::encode_bf16<T>,
    .encode_int8 = ref::encode_int8<T>,
    .decode_bf16 = ref::decode_bf16<T>,
    .decode_int8 = ref::decode_int8<T>,
    .decode_add_bf16 = ref::decode_add_bf16<T>,
    .decode_add_int8 = ref::decode_add_int8<T>,
};

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

template <class T>
const KernelTable<T>& active_kernels() {
  static const KernelTable<T>& table = kernel_table<T>(active_isa());
  return table;
}

template const KernelTable<float>& active_kernels();
template const KernelTable<double>& active_kernels();

}  // namespace gossamer
