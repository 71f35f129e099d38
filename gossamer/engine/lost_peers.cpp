#include "gossamer/engine/lost_peers.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/census_steps.h"
#include "gossamer/transport/cut_off.h"

namespace gossamer {

Fault fault_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const TransportError& failure) {
    return failure.details().fault;
  }
}

LostPeers::LostPeers(Transport& transport, std::vector<int> peers, std::int64_t census_every)
    : transport_(transport), peers_(std::move(peers)), census_every_(census_every) {}

void LostPeers::pass_over(const std::exception_ptr& error, std::int64_t steps) {
  try {
    std::rethrow_exception(error);
  } catch (const TransportError& failure) {
    const TransportError::Details& details = failure.details();
    const Fault fault = details.fault;
    if (fault == Fault::late || fault == Fault::other) throw;
    if (fault == Fault::refused) return;
    {
      const std::lock_guard lock(mutex_);
      if (is_before_return(details.peer, steps)) return;
    }
    if (fault == Fault::silent) transport_.expel(details.peer);
    if (fault == Fault::expelled) heed_expulsion(details.peer);
    if (fault == Fault::replaced) heed_replacement(details.peer);
    lose({details.peer, details.reason});
  }
}

/// Whether the peer comes back only later than that.
bool LostPeers::is_before_return(int peer, std::int64_t steps) const {
  const auto back = back_.find(peer);
  return back != back_.end() && steps < back->second;
}

void LostPeers::lose(LostPeer lost) {
  const std::lock_guard lock(mutex_);
  if (!lost_.try_emplace(lost.peer, lost).second) return;
  new_.push_back(lost);
}

void LostPeers::heed_expulsion(int peer) const {
  {
    const std::lock_guard lock(mutex_);
    if (lost_.contains(peer)) return;
  }
  end(peer, kExpelled, Fault::expelled);
}

void LostPeers::heed_replacement(int peer) const {
  end(peer,
      "another process has come back as this worker, and takes part in its place; this one ends",
      Fault::replaced);
}

void LostPeers::end(int peer, const char* reason, Fault fault) const {
  throw TransportError({.rank = transport_.describe().rank,
                        .peer = peer,
                        .operation = "",
                        .elapsed_s = 0,
                        .reason = reason,
                        .fault = fault});
}

void LostPeers::come_back(int peer, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  lost_.erase(peer);
  back_[peer] = steps;
  new_back_.push_back({peer, steps});
}

void LostPeers::begin_with(const std::vector<int>& peers, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  for (const int peer : peers) back_[peer] = steps;
}

bool LostPeers::is_away(int peer, std::int64_t steps) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(peer) || is_before_return(peer, steps);
}

bool LostPeers::is_off(int peer, std::int64_t steps) const {
  const std::lock_guard lock(mutex_);
  const auto back = back_.find(peer);
  return lost_.contains(peer) ||
         (back != back_.end() && steps < steps_before_edges(back->second, census_every_));
}

bool LostPeers::are_in(const Plan& plan, std::int64_t steps) const {
  const auto is_lost = [&](const Message& message) { return is_off(message.peer, steps); };
  return std::ranges::any_of(plan.phases, [&](const Phase& phase) {
    return std::ranges::any_of(phase.sends, is_lost) ||
           std::ranges::any_of(phase.receives, is_lost);
  });
}

std::vector<int> LostPeers::came_back(std::int64_t from, std::int64_t to) const {
  const std::lock_guard lock(mutex_);
  std::vector<int> peers;
  for (const auto& [peer, steps] : back_) {
    if (from <= steps && steps < to) peers.push_back(peer);
  }
  return peers;
}

std::vector<LostPeer> LostPeers::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

std::vector<PeerBack> LostPeers::take_new_back() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_back_, {});
}

int LostPeers::live() const {
  const std::lock_guard lock(mutex_);
  const auto left = std::ranges::count_if(peers_, [&](int peer) { return !lost_.contains(peer); });
  return static_cast<int>(left) + 1;
}

}  // namespace gossamer
