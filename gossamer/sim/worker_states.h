#pragma once
/// WorkerStates: what the workers of a simulation do in their steps, in the engine's order.

#include <cstdint>
#include <vector>

#include "gossamer/model/device_queues.h"
#include "gossamer/model/host_work.h"
#include "gossamer/sim/exchanges.h"
#include "gossamer/sim/late.h"
#include "gossamer/sim/simulate.h"

namespace gossamer::sim {

/// Note [Order of a step]: a worker computes forward and backward. Where payloads leave after the
/// previous update (cwa) it then updates its buckets, always one whose exchange has ended, of those
/// the latest, and launches each again for the next step; with update = backward it does so for
/// each bucket within the backward, waiting for it. Where they leave before the update (allreduce)
/// or after a local one (atc), which takes the time of the update, each bucket is launched within
/// the backward, or all after it, the latest first, and finished when its exchange has ended. A
/// bucket whose pattern has a second stage is launched again when the first has ended; then the
/// next step's payloads, where they leave ahead, are launched at the end of the step. DDP launches
/// a bucket when the one before has ended, and updates when all have. The step ends with the last
/// update.
///
/// Where parameters are on a device (model/device_queues.h, Note [Device copies]), a launch waits
/// for the copy out of it, and what an exchange brings is there after the copy into it. Where hosts
/// have a host_rate, the thread of the exchanges works in between (model/host_work.h), on what
/// comes first.
class WorkerStates {
 public:
  /// All must outlive this.
  WorkerStates(const ClusterSpec& cluster, const Workload& workload, const SimMethod& method,
               const SimOptions& options, SimResult& result);

  void start();
  void handle(SimTime now, const Event& event);
  Network& network() { return network_; }
  Events& events() { return events_; }
  /// Sets waits_for, and what was counted.
  void finish();

 private:
  enum class Doing { computing, updating, waiting, finished, lost };
  static constexpr int kAny = -1;
  struct Worker {
    Doing doing = Doing::computing;
    std::int64_t step = 0;
    SimTime begin{0};
    SimTime since{0};  ///< of the computing, updating or waiting that goes on
    SimTime waited{0};
    ComputeMoments moments;
    int next = 0;                       ///< the bucket whose backward comes next
    int target = kAny;                  ///< the bucket it wants to update
    int beginning = kAny;               ///< the bucket whose local update it makes
    int reduced = 0;                    ///< ddp: buckets whose exchange was launched
    std::vector<char> open;             ///< by bucket: stages of this step that have not ended
    std::vector<std::int64_t> leaving;  ///< by bucket: the exchange that is launched once copied
    std::vector<HostWork> work;         ///< by bucket: of the exchange that goes on
    SimTime thread_free{0};             ///< when the thread of its exchanges is idle
    std::vector<char> is_away;  ///< by bucket: from its copy out of the device to that into it
  };

  Worker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  int buckets() const { return static_cast<int>(workload_.buckets.size()); }
  const PatternFacts& pattern() const { return *method_.pattern; }
  bool sends_ahead() const { return pattern().launch == Launch::after_previous_update; }
  bool stops_at_buckets() const { return method_.update == UpdateAt::backward; }

  void begin_step(SimTime now, int w);
  void compute(SimTime now, int w);
  void computed(SimTime now, int w);
  void record_compute(SimTime now, int w);
  void launch(SimTime now, int w, int bucket, std::int64_t exchange);
  bool is_beside() const { return devices_.are_beside() || !host_rates_.empty(); }
  SimTime host_works(SimTime ready, int w, double work);
  void copied_out(SimTime now, int w, int bucket);
  void launch_all(SimTime now, int w);
  void begin_bucket(SimTime now, int w, int bucket);
  void begun(SimTime now, int w);
  void reduce_next(SimTime now, int w);
  void exchange_ended(SimTime now, const Exchanges::Ended& ended);
  void came(SimTime now, int w);
  bool is_ready(int w, int bucket) const;
  SimTime update_takes(int w, int bucket) const;
  std::size_t index(int w, int bucket) const {
    return static_cast<std::size_t>(w) * workload_.buckets.size() +
           static_cast<std::size_t>(bucket);
  }
  int choose(int w) const;
  void take(SimTime now, int w);
  void mixed(SimTime now, int w, int bucket);
  void updated(SimTime now, int w, int bucket);
  void go_on(SimTime now, int w);
  void record(TimelineEvent::Kind kind, int w, int bucket, SimTime begin, SimTime end);
  void record_exchange(SimTime now, int w, int bucket);
  void lose(SimTime now, int w);

  const Workload& workload_;
  const SimMethod& method_;
  const SimOptions& options_;
  SimResult& result_;
  const HostShape shape_;
  const int stages_;
  const bool waits_;
  Events events_;
  Network network_;
  Exchanges exchanges_;
  LateBoard late_;
  std::vector<SimTime> update_times_;
  DeviceQueues<SimTime> devices_;
  std::vector<double> host_rates_;  ///< by worker, or empty
  std::vector<Worker> workers_;
};

}  // namespace gossamer::sim
