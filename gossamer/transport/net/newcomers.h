#pragma once
/// Newcomers: the workers that have come back, and who of them still waits to be let in.

#include <cstddef>
#include <utility>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Of one transport, under its lock.
class Newcomers {
 public:
  explicit Newcomers(std::size_t workers) : is_held_back_(workers, 0) {}

  /// From now on; also those that nobody has asked for yet.
  void hold_back() {
    holds_back_ = true;
    for (const Newcomer& each : news_) is_held_back_[index(each.peer)] = 1;
  }
  void come(const Newcomer& newcomer) {
    news_.push_back(newcomer);
    is_held_back_[index(newcomer.peer)] = holds_back_ ? 1 : 0;
  }
  void let_in(int peer) { is_held_back_[index(peer)] = 0; }
  bool is_held_back(int peer) const { return is_held_back_[index(peer)] != 0; }
  std::vector<Newcomer> take() { return std::exchange(news_, {}); }

 private:
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }

  bool holds_back_ = false;
  std::vector<Newcomer> news_;      ///< not yet asked for
  std::vector<char> is_held_back_;  ///< by rank
};

}  // namespace gossamer
