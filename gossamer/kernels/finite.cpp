#include "gossamer/kernels/finite.h"

#include "gossamer/kernels/kernel_table.h"

namespace gossamer {

template <class T>
bool all_finite(std::span<const T> a) {
  return active_kernels<T>().all_finite({0, a.size()}, a.data());
}

template bool all_finite(std::span<const float>);
template bool all_finite(std::span<const double>);

}  // namespace gossamer
