#pragma once
/// What can happen in a simulation.

#include <cstdint>

#include "gossamer/sim/event_queue.h"

namespace gossamer::sim {

struct Event {
  enum class Kind : std::uint8_t {
    computed,      ///< worker `who` has come to its next stop
    updated,       ///< worker `who` has updated bucket `detail`
    left,          ///< the last byte of transfer `who`, if its rate still has version `detail`
    arrived,       ///< transfer `who`
    copied_out,    ///< bucket `detail` from the device of worker `who`
    copied_in,     ///< to it
    returned,      ///< what worker `who` lent of bucket `detail`
    link_changed,  ///< number `who` of the options
    lost,          ///< worker `who`
  };
  Kind kind = Kind::computed;
  std::int32_t who = 0;
  std::uint32_t detail = 0;
};

using Events = EventQueue<Event>;

}  // namespace gossamer::sim
