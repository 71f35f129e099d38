#pragma once
/// Newcomers: the workers that have come back, and who of them still waits to be let in.

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Of one transport. All functions may be called from any thread.
class Newcomers {
 public:
  explicit Newcomers(std::size_t workers) : of_(workers) {}

  /// From now on; also those that nobody has asked for yet.
  void hold_back() {
    const std::lock_guard lock(mutex_);
    holds_back_ = true;
    for (const Newcomer& each : news_) {
      of(each.peer) = {.is_held_back = true, .standing = Standing::stranger};
    }
  }
  void come(const Newcomer& newcomer) {
    const std::lock_guard lock(mutex_);
    news_.push_back(newcomer);
    of(newcomer.peer) = {.is_held_back = holds_back_,
                         .standing = holds_back_ ? Standing::stranger : Standing::counted};
  }
  /// This worker has come back itself.
  void come_back(int own) {
    const std::lock_guard lock(mutex_);
    of(own).standing = Standing::stranger;
  }
  void let_in(int peer) {
    const std::lock_guard lock(mutex_);
    of(peer).is_held_back = false;
  }
  bool is_held_back(int peer) const {
    const std::lock_guard lock(mutex_);
    return of_[static_cast<std::size_t>(peer)].is_held_back;
  }
  /// See Note [Cut off]. What has been agreed on before somebody came back says nothing of it.
  void count_in(int peer, Standing standing) {
    const std::lock_guard lock(mutex_);
    if (of(peer).is_held_back) return;
    of(peer).standing = std::max(of(peer).standing, standing);
  }
  Standing standing(int peer) const {
    const std::lock_guard lock(mutex_);
    return of_[static_cast<std::size_t>(peer)].standing;
  }
  std::vector<Newcomer> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, {});
  }

 private:
  struct Place {
    bool is_held_back = false;
    Standing standing = Standing::counted;
  };
  Place& of(int peer) { return of_[static_cast<std::size_t>(peer)]; }

  mutable std::mutex mutex_;  // guards all below
  bool holds_back_ = false;
  std::vector<Newcomer> news_;  ///< not yet asked for
  std::vector<Place> of_;       ///< by rank
};

}  // namespace gossamer
