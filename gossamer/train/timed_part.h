#pragma once
/// TimedPart: the steps of a worker that are timed, without what is between them.

#include <chrono>
#include <cstdint>
#include <utility>

#include "gossamer/base/clock.h"
#include "gossamer/base/cluster.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// It begins with reset(), and runs but between pause() and resume().
class TimedPart {
 public:
  /// Of the bytes to workers of other hosts. The transport must outlive this.
  TimedPart(const Transport& transport, HostShape shape)
      : transport_(transport), shape_(std::move(shape)) {}

  /// Begins anew after so many steps, in which the worker has waited for others for so long.
  void reset(std::int64_t steps, double exposed_s) {
    from_step_ = steps;
    exposed_before_s_ = exposed_s;
    seconds_ = bytes_ = 0;
    resume();
  }
  void resume() {
    bytes_before_ = bytes_to_other_hosts();
    resumed_at_ = Clock::now();
  }
  void pause() {
    seconds_ += std::chrono::duration<double>(Clock::now() - resumed_at_).count();
    bytes_ += bytes_to_other_hosts() - bytes_before_;
  }

  std::int64_t from_step() const { return from_step_; }
  double exposed_before_s() const { return exposed_before_s_; }
  double seconds() const { return seconds_; }
  double bytes() const { return bytes_; }

 private:
  double bytes_to_other_hosts() const {
    const TransportInfo info = transport_.describe();
    double bytes = 0;
    for (const EdgeBytes& edge : info.edges) {
      const bool crosses = shape_.host_of(edge.peer) != shape_.host_of(info.rank);
      if (crosses) bytes += static_cast<double>(edge.sent);
    }
    return bytes;
  }

  const Transport& transport_;
  const HostShape shape_;
  std::int64_t from_step_ = 0;
  double exposed_before_s_ = 0;
  Clock::time_point resumed_at_;
  double seconds_ = 0;
  double bytes_before_ = 0;
  double bytes_ = 0;
};

}  // namespace gossamer
