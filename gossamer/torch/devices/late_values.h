#pragma once
/// LateValues: numbers on a device that the host reads when they are there.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace gossamer {

/// Nobody waits for the device, unless it is several steps behind.
class LateValues {
 public:
  struct Known {
    std::int64_t step = 0;
    std::vector<double> values;
  };

  /// Queues a copy of a vector to the host.
  void add(std::int64_t step, const at::Tensor& values);
  /// Those of the oldest step that was added and not taken: where they are there, or `waits`, or
  /// more steps are on their way than kMost. Nothing where there are none.
  std::optional<Known> take(bool waits);

 private:
  static constexpr std::size_t kMost = 2;
  struct Coming {
    std::int64_t step = 0;
    at::Tensor here;  ///< pinned
    c10::Event over;
  };
  std::deque<Coming> coming_;
};

}  // namespace gossamer
