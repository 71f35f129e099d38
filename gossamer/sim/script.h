#pragma once
/// Scripts: what the simulator needs of Plans, with every send matched to its receive.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/base/dtype.h"
#include "gossamer/model/host_work.h"
#include "gossamer/sim/crowd.h"
#include "gossamer/sim/method.h"
#include "gossamer/sim/moments.h"
#include "gossamer/sim/network.h"

namespace gossamer::sim {

struct ScriptSend {
  int to = 0;
  int edge = 0;
  std::int64_t bytes = 0;
  int receive_phase = 0;    ///< at the receiver
  int receive = 0;          ///< index among the receives of that phase
  bool is_payload = false;  ///< else what an earlier phase or a coding has left
};

struct ScriptReceive {
  int from = 0;
  int edge = 0;
};

/// One worker's Plan.
struct Script {
  struct Ends {
    int sends = 0;
    int receives = 0;
  };
  std::vector<Ends> phases;  ///< where the sends and receives of each phase end
  std::vector<ScriptSend> all_sends;
  std::vector<ScriptReceive> all_receives;

  int count() const { return static_cast<int>(phases.size()); }
  std::span<const ScriptSend> sends(int phase) const;
  std::span<const ScriptReceive> receives(int phase) const;
};

/// What one bucket does in a round.
struct RoundScripts {
  std::vector<Script> by_worker;  ///< empty for members of a crowd
  std::vector<Crowd> crowds;
  std::vector<HostWork> work;  ///< by worker
  std::vector<int> crowd_of;   ///< by worker: index of its crowd, or −1; empty without crowds

  const Script& of(int worker) const { return by_worker[static_cast<std::size_t>(worker)]; }
  /// Null where the worker's messages are followed one by one.
  const Crowd* crowd(int worker) const;
};

/// Compiles the Plans of all workers for a round and a number of elements; asserts that what is
/// sent is what is received. Groups of more than `largest_group` workers become crowds. Edges are
/// numbered in `network`.
RoundScripts make_scripts(const SimMethod& method, const Round& round, const HostShape& shape,
                          std::int64_t count, DType dtype, int largest_group, Network& network);

/// Keeps scripts by round of the period and bucket size; of schedules without a period those that
/// were made last.
class ScriptBook {
 public:
  /// All must outlive the book.
  ScriptBook(const SimMethod& method, const HostShape& shape, const Workload& workload,
             int largest_group, Network& network);

  using Scripts = std::shared_ptr<const RoundScripts>;
  /// For a bucket's exchange.
  Scripts find(int bucket, std::int64_t exchange);

 private:
  const SimMethod& method_;
  const HostShape& shape_;
  const Workload& workload_;
  const int largest_group_;
  Network& network_;
  std::map<std::pair<std::int64_t, std::int64_t>, Scripts> scripts_;  ///< by round and elements
  std::map<std::int64_t, Round> rounds_;                              ///< that scripts_ has used
};

}  // namespace gossamer::sim
