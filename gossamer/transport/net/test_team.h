#pragma once
/// Several workers of net transports in one process, for tests.

#include <barrier>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gossamer/transport/net/net_transport.h"

namespace gossamer {

/// Workers of this process; any of them may be made again. Of some the first `begin` are there.
class Team {
 public:
  Team(int workers, NetOptions options) : Team(workers, std::move(options), workers) {}
  Team(int workers, NetOptions options, int begin)
      : options_(std::move(options)),
        endpoints_(static_cast<std::size_t>(workers)),
        generations_(endpoints_.size()),
        transports_(endpoints_.size()) {
    std::barrier all_here(begin);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < begin; ++rank) {
      threads.emplace_back([&, rank] { at(transports_, rank) = make(rank, &all_here); });
    }
  }

  Transport& operator[](int rank) { return *at(transports_, rank); }
  int size() const { return static_cast<int>(endpoints_.size()); }
  std::uint64_t generation(int rank) { return at(generations_, rank); }

  /// The same rank again, as the next generation; what it was before is destroyed.
  void restart(int rank) {
    at(transports_, rank).reset();
    replace(rank);
  }
  /// As if it had been the last one to be made.
  void make_late(int rank) {
    at(transports_, rank).reset();
    at(transports_, rank) = make(rank, nullptr);
  }
  /// As restart(), but the former one lives on.
  std::unique_ptr<Transport> replace(int rank) {
    std::unique_ptr<Transport> former = std::move(at(transports_, rank));
    ++at(generations_, rank);
    at(transports_, rank) = make(rank, nullptr);
    return former;
  }

 private:
  template <class T>
  static T& at(std::vector<T>& all, int rank) {
    return all[static_cast<std::size_t>(rank)];
  }

  std::unique_ptr<Transport> make(int rank, std::barrier<>* all_here) {
    NetOptions options = options_;
    options.rank = rank;
    options.workers = size();
    options.token = "open sesame";
    options.address = "127.0.0.1";
    options.generation = at(generations_, rank);
    options.share = [&](const std::string& mine) {
      {
        const std::lock_guard lock(mutex_);
        at(endpoints_, rank) = mine;
      }
      if (all_here != nullptr) all_here->arrive_and_wait();
      const std::lock_guard lock(mutex_);
      return endpoints_;
    };
    return make_net_transport(options);
  }

  const NetOptions options_;
  std::mutex mutex_;  // guards endpoints_
  std::vector<std::string> endpoints_;
  std::vector<std::uint64_t> generations_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace gossamer
