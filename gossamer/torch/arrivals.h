#pragma once
/// Arrivals: tells when a backward pass has written the gradient of a tensor.

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace gossamer {

/// What a gradient was when somebody looked at it. Note [Behind autograd's back]: changes through
/// `.data` and by collectives raise no version. Such a change is noticed if it changes one of a few
/// elements, as an all-reduce, a scaling or a clipping of the whole does.
class GradientMark {
 public:
  GradientMark() = default;
  explicit GradientMark(const at::Tensor& gradient);
  /// Whether this is the same tensor with the values that it had then.
  bool is_of(const at::Tensor& gradient) const;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  Weak tensor_{at::Tensor().getIntrusivePtr()};  ///< its address is not used again meanwhile
  const void* data_ = nullptr;
  std::int64_t version_ = -1;
  std::uint64_t sample_ = 0;
};

/// Hooks into the accumulation of gradients, beside the hooks of others. Passes that compiled
/// autograd runs are not heard of.
class Arrivals {
 public:
  using OnArrival = std::function<void(std::size_t)>;
  /// `on_arrival(i)` is called in the thread of the pass whenever the gradient of tensor i has been
  /// written. What it throws comes out of backward(). The passes must not overlap.
  Arrivals(std::vector<at::Tensor> tensors, OnArrival on_arrival);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Also hears of tensors that have been made to require gradients since.
  void watch_new();

 private:
  struct Hook;
  std::vector<at::Tensor> tensors_;
  std::shared_ptr<const OnArrival> on_arrival_;
  std::vector<std::unique_ptr<Hook>> hooks_;  ///< by tensor; null where it needs no gradient
};

}  // namespace gossamer
