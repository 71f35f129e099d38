#pragma once
/// For tests: all workers of a net transport in one process.

#include <barrier>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/transport/net/net_transport.h"

namespace gossamer {

/// Threads make them, because each waits for the endpoints of all others.
inline std::vector<std::unique_ptr<Transport>> make_net_team(int workers,
                                                             const NetOptions& options = {}) {
  const auto count = static_cast<std::size_t>(workers);
  std::vector<std::string> endpoints(count);
  std::vector<std::unique_ptr<Transport>> team(count);
  std::barrier all_here(workers);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      NetOptions mine = options;
      mine.rank = static_cast<int>(rank);
      mine.workers = workers;
      mine.token = "open sesame";
      mine.share = [&, rank](const std::string& own) {
        endpoints[rank] = own;
        all_here.arrive_and_wait();
        return endpoints;
      };
      team[rank] = make_net_transport(mine);
    });
  }
  threads.clear();  // joins
  return team;
}

}  // namespace gossamer
