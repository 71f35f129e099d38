// Where an engine puts what travels; see Note [Outboxes].
#include <algorithm>
#include <memory>

#include "gossamer/engine/engine.h"

namespace gossamer {

/// Whether any round has an edge.
bool Engine::exchanges_anything() const {
  const Schedule& schedule = options_.schedule;
  if (schedule.period == 0) return schedule.shape.workers() > 1;
  for (std::int64_t t = 0; t < schedule.period; ++t) {
    const Round round = round_at(schedule, t, losses_);
    const auto is_shared = [](const auto& members) { return members.size() > 1; };
    if (std::ranges::any_of(round.groups, is_shared)) return true;
    if (std::ranges::any_of(round.rows, is_shared)) return true;
  }
  return false;
}

/// One memory for all lanes: each memory costs a descriptor here and, if shared, at every peer.
void Engine::make_outboxes(bool is_shared) {
  std::size_t bytes = 0;
  for (const auto& lane : lanes_) bytes += lane->outbox_bytes(is_shared);
  Owner owner;
  std::byte* begin = nullptr;
  if (is_shared) {
    const auto memory = std::make_shared<const SharedMemory>(bytes);
    begin = memory->data();
    owner = memory;
  } else {
    outboxes_ = make_aligned_bytes(bytes);
    begin = outboxes_.get();
  }
  for (const auto& lane : lanes_) {
    lane->set_outbox(owner, begin);
    begin += lane->outbox_bytes(is_shared);
  }
}

}  // namespace gossamer
