#include "gossamer/kernels/digest.h"

#include "gossamer/kernels/checks.h"

namespace gossamer {

template <class T>
void copy_digested(std::span<const T> x, std::span<T> to, std::span<Digest> digests) {
  require_length("copy_digested", "to", to.size(), x.size());
  require_digests("copy_digested", digests.size(), x.size());
  active_kernels<T>().copy_digested({0, x.size()}, x.data(), to.data(), digests.data());
}

template void copy_digested(std::span<const float>, std::span<float>, std::span<Digest>);
template void copy_digested(std::span<const double>, std::span<double>, std::span<Digest>);

}  // namespace gossamer
