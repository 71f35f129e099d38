#pragma once
/// GradientStage: how gradients on a device get to the exchange that averages them, and back as
/// means.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <span>
#include <vector>

namespace gossamer {

/// Note [Gradients on a device]: as with parameters (Note [Parameters on a device]) the exchange
/// stays in host memory, here that of a bucket's flat array. With s for a buffer on the device:
///
///   a hook    all gradients of the bucket are queued
///   out       waits for the streams that write them, and for the last copy from s; the gradients
///             are copied to s, and s to the flat array
///   runner    sends the flat array once that is over
///   the end   of the pass waits for the exchange, as in CPU memory; the means go to pinned memory
///   user's    that goes to s, and s to the gradients
///
/// The host writes the pinned memory when `out` has been waited for, which comes after the last
/// copy from there.
class GradientStage {
 public:
  /// Of one bucket: `flat` is its array, `views` are of that, by tensor. `out` is the stream in
  /// which gradients leave.
  GradientStage(const c10::Stream& out, const at::Tensor& flat, std::span<const at::Tensor> views);
  /// Waits until the device writes to `flat` no more, or has failed.
  ~GradientStage();
  GradientStage(const GradientStage&) = delete;
  GradientStage& operator=(const GradientStage&) = delete;

  /// A gradient is written in the stream that is current.
  void note_stream();
  /// Queues flat := gradients, by tensor; those that are undefined count as zero.
  void copy_out(std::span<const at::Tensor> gradients);
  /// Whether they are there; from any thread, throws what went wrong on the device.
  bool is_out() const;
  /// Where all means of the bucket are to be put, in host memory, before copy_in().
  at::Tensor& means();
  /// Queues gradients := means in the stream that is current; undefined ones are left out.
  void copy_in(std::span<const at::Tensor> gradients);

 private:
  c10::Stream out_;
  at::Tensor flat_;                    ///< the exchange's, in host memory
  at::Tensor means_;                   ///< pinned
  at::Tensor staged_;                  ///< s
  std::vector<at::Tensor> places_;     ///< of s, by tensor
  std::vector<c10::Stream> writers_;   ///< of the gradients of this pass
  std::vector<at::Tensor> gradients_;  ///< that `out` still reads
  c10::Event written_;                 ///< by a writer
  c10::Event left_;                    ///< flat := gradients is over
  c10::Event used_;                    ///< gradients := means is over
};

}  // namespace gossamer
