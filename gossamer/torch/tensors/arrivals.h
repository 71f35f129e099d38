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
  /// Whether this is the same tensor, whatever its values are.
  bool is_in(const at::Tensor& gradient) const;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  Weak tensor_{at::Tensor().getIntrusivePtr()};  ///< its address is not used again meanwhile
  const void* data_ = nullptr;
  std::int64_t version_ = -1;
  std::uint64_t sample_ = 0;
};

/// Note [Every gradient is heard of]: the hook is set where autograd accumulates a leaf's
/// gradients, beside the hooks of others, and also for tensors that are frozen meanwhile: whoever
/// thaws them tells nobody. Compiled autograd calls no such hook, but names the tensors of each of
/// its passes before it runs: these come to `on_compiled`. Nobody hears of gradients that are
/// assigned to
/// `.grad`.
class Arrivals {
 public:
  using OnArrival = std::function<void(std::size_t)>;
  /// `on_arrival(i)` is called in the thread of the pass whenever the gradient of tensor i has been
  /// written. What it throws comes out of backward(). The passes must not overlap. `on_compiled(i)`
  /// is called before compiled autograd writes it; null: nobody is told.
  Arrivals(std::vector<at::Tensor> tensors, OnArrival on_arrival, OnArrival on_compiled = nullptr);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Also hears of tensors that could not be hooked before: those that had no gradient because of
  /// their type, and those that have been converted since.
  void watch_new();

 private:
  struct Hook;
  struct Listeners {
    OnArrival arrived;
    OnArrival compiled;
  };
  std::vector<at::Tensor> tensors_;
  std::shared_ptr<const Listeners> listeners_;
  std::vector<std::unique_ptr<Hook>> hooks_;  ///< by tensor; null where it can have no gradient
};

}  // namespace gossamer
