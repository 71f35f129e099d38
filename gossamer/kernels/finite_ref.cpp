#include <cmath>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {

template <class T>
bool all_finite(Range range, const T* a) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (!std::isfinite(a[i])) return false;
  }
  return true;
}

template bool all_finite(Range, const float*);
template bool all_finite(Range, const double*);

}  // namespace gossamer::ref
