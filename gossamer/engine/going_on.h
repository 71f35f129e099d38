#pragma once
/// GoingOn: what a worker has that goes on without those that are lost.

#include <cstdint>
#include <memory>
#include <optional>

#include "gossamer/engine/admission.h"
#include "gossamer/engine/arrival.h"
#include "gossamer/engine/census.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/lookout.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/options.h"

namespace gossamer {

class GoingOn {
 public:
  /// All must outlive this. `counts`: it takes a census, see Note [Rounds formed anew].
  GoingOn(Transport& transport, Collectives& collectives, const EngineOptions& options,
          bool counts);

  /// While this worker waits, after so many steps. Whom it waits for may wait for a newcomer, and
  /// that one for an answer.
  void while_waiting(std::int64_t steps);
  /// Between two steps, after so many: who exchanges from now on, where a census has just ended.
  std::optional<Seating> count(std::int64_t steps);
  /// Between two steps. Throws TransportError where this worker is cut off.
  void look(std::int64_t steps);
  /// Of a worker that comes back: begins with those that the arrival has agreed with.
  void begin_with(Arrival& arrival, std::int64_t steps);

  bool counts() const { return census_.has_value(); }
  LostPeers& lost() { return lost_; }
  Admission& admission() { return admission_; }

 private:
  Transport& transport_;
  Collectives& collectives_;
  const bool agrees_;  ///< on who is there
  LostPeers lost_;
  Lookout lookout_;
  Admission admission_;
  std::optional<Census> census_;
  std::int64_t steps_ = 0;
};

}  // namespace gossamer
