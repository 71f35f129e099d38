#include "gossamer/model/max_plus.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <span>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/model/device_queues.h"
#include "gossamer/model/exchange_jobs.h"

namespace gossamer {
namespace {

void check(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
           const MaxPlusOptions& options) {
  check_cluster(cluster);
  check_argument("max-plus", cluster.shape().workers_per_host == schedule.shape.workers_per_host,
                 "the schedule is for other hosts than the cluster's",
                 std::to_string(schedule.shape.workers()) + " workers on " +
                     std::to_string(schedule.shape.hosts()) + " hosts");
  check_argument("max-plus", options.overhead >= 1 && std::isfinite(options.overhead),
                 "the overhead must be at least 1", std::to_string(options.overhead));
  check_argument("max-plus", options.steps >= 1, "there must be at least 1 step",
                 std::to_string(options.steps));
  check_argument("max-plus", options.warm_up >= 0, "the warm-up must not be negative",
                 std::to_string(options.warm_up));
  check_workload(work, schedule.shape.workers());
}

JobTable job_table(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
                   const MaxPlusOptions& options) {
  return {cluster, schedule, {.dtype = work.dtype, .plan = options.plan}, options.overhead};
}

/// Which round bucket b follows at step t.
std::int64_t round_of(const Schedule& schedule, const MaxPlusOptions& options, std::int64_t t,
                      std::size_t bucket) {
  const bool shifts = options.stagger && !schedule.loss_driven;
  return shifts ? t + static_cast<std::int64_t>(bucket) : t;
}

int measured_steps(const Schedule& schedule, int steps) {
  if (schedule.period <= 1 || schedule.period > 2 * steps) return steps;
  return (steps + schedule.period - 1) / schedule.period * schedule.period;
}

/// The state between two steps. Rows by worker, columns by bucket.
class Recursion {
 public:
  Recursion(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
            const MaxPlusOptions& options)
      : work_(work),
        schedule_(schedule),
        options_(options),
        buckets_(work.buckets.size()),
        workers_(static_cast<std::size_t>(schedule.shape.workers())),
        jobs_(job_table(cluster, work, schedule, options)),
        begin_(workers_, 0),
        compute_(workers_, 0),
        updated_(workers_ * buckets_, 0),
        arrived_(workers_ * buckets_, 0),
        free_(static_cast<std::size_t>(jobs_.stations().count()), 0),
        busy_(free_.size(), 0),
        devices_(device_copy_s(cluster, work, options.device_copies), options.device_copies,
                 workers_),
        host_rates_(options.host_works ? host_rates(cluster) : std::vector<double>()),
        threads_(host_rates_.size()) {
    for (std::size_t b = 0; b < buckets_; ++b) shares_.push_back(share_of(work, b));
    if (waits_ahead()) serve(0);
  }

  const std::vector<double>& begin() const { return begin_; }
  const std::vector<double>& compute() const { return compute_; }
  const std::vector<double>& busy() const { return busy_; }
  const std::vector<double>& arrived() const { return arrived_; }
  const Stations& stations() const { return jobs_.stations(); }

  void step(std::int64_t t) {
    for (std::size_t i = 0; i < workers_; ++i) {
      compute_[i] = compute_s(work_.compute, static_cast<int>(i), t);
      update_buckets(i);
    }
    serve(waits_ahead() ? t + 1 : t);
    for (std::size_t i = 0; i < workers_; ++i) {
      begin_[i] = updated_[i * buckets_ + buckets_ - 1];
      if (waits_ahead()) continue;
      for (std::size_t b = 0; b < buckets_; ++b) {
        begin_[i] = std::max(begin_[i], arrived_[i * buckets_ + b]);
      }
      if (updates_last()) begin_[i] += work_.update_s;
    }
  }

 private:
  /// An exchange of this step, in the order of buckets and of the round.
  struct Due {
    double ready = 0;
    std::uint32_t bucket = 0;
    std::uint32_t job = 0;  ///< of those of the bucket
  };

  bool is_beside() const { return devices_.are_beside() || !host_rates_.empty(); }
  /// When the thread of a worker's exchanges has done it.
  double host_works(std::size_t i, double ready, double work) {
    return host_rates_.empty() ? ready : threads_[i].take(ready, work / host_rates_[i]);
  }
  bool waits_ahead() const { return options_.result_needed == ResultNeeded::next_step; }
  bool updates_last() const { return options_.updates_last; }

  void update_buckets(std::size_t i) {
    const double before_first =
        options_.launch_at == LaunchAt::backward ? work_.forward_share : 1.0;
    const double update_s = updates_last() ? 0 : work_.update_s;
    double time = begin_[i] + before_first * compute_[i];
    for (std::size_t b = 0; b < buckets_; ++b) {
      time += (1 - before_first) * compute_[i] * shares_[b];
      if (waits_ahead()) time = std::max(time, arrived_[i * buckets_ + b]);
      time += update_s * shares_[b];
      time += devices_.within_update(i * buckets_ + b);
      updated_[i * buckets_ + b] = time;
    }
  }

  /// When the payloads of bucket b have left the devices of those that send.
  void copy_out(const RoundJobs& jobs, std::size_t b) {
    takes_part_.assign(workers_, 0);
    for (const int member : jobs.members) takes_part_[static_cast<std::size_t>(member)] = 1;
    for (std::size_t i = 0; i < workers_; ++i) {
      const std::size_t k = i * buckets_ + b;
      if (takes_part_[i] == 0) continue;
      left_[k] = devices_.out(i, k, updated_[k]);
      if (!host_rates_.empty()) left_[k] = host_works(i, left_[k], jobs.work[i].before);
    }
  }

  /// When what has arrived has come to the devices.
  void copy_in() {
    for (std::size_t i = 0; i < workers_; ++i) {
      order_.clear();
      for (std::size_t k = i * buckets_; k < (i + 1) * buckets_; ++k) {
        if (arrived_[k] > 0) order_.push_back(k);
      }
      std::ranges::stable_sort(order_, {}, [&](std::size_t k) { return arrived_[k]; });
      for (const std::size_t k : order_) {
        const auto& work = rounds_[k - i * buckets_]->work;
        const double here = work.empty() ? arrived_[k] : host_works(i, arrived_[k], work[i].after);
        arrived_[k] = devices_.in(i, k, here);
      }
      if (!threads_.empty()) threads_[i].forget_before(begin_[i]);
    }
  }

  void collect(std::int64_t t) {
    due_.clear();
    rounds_.clear();
    if (is_beside()) left_ = updated_;
    const std::vector<double>& launched = is_beside() ? left_ : updated_;
    for (std::size_t b = 0; b < buckets_; ++b) {
      const std::int64_t round = round_of(schedule_, options_, t, b);
      const RoundJobs& jobs =
          *rounds_.emplace_back(&jobs_.at(round, options_.payloads * work_.buckets[b]));
      if (is_beside()) copy_out(jobs, b);
      for (std::size_t k = 0; k < jobs.jobs.size(); ++k) {
        double ready = 0;
        for (int member : jobs.members_of(k)) {
          ready = std::max(ready, launched[static_cast<std::size_t>(member) * buckets_ + b]);
        }
        due_.push_back({ready, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(k)});
      }
    }
    const auto earlier = [](const Due& a, const Due& b) { return a.ready < b.ready; };
    if (!std::ranges::is_sorted(due_, earlier)) std::ranges::stable_sort(due_, earlier);
  }

  /// When the last of these stations, which are asked at `ready`, has done its part.
  double occupy(std::span<const StationTime> uses, double ready) {
    double done = ready;
    for (const StationTime& use : uses) {
      const auto station = static_cast<std::size_t>(use.station);
      free_[station] = std::max(free_[station], ready) + use.seconds;
      busy_[station] += use.seconds;
      done = std::max(done, free_[station]);
    }
    return done;
  }

  /// All exchanges of round t of the schedule, in the order in which they become ready.
  void serve(std::int64_t t) {
    collect(t);
    std::ranges::fill(arrived_, 0);
    for (const Due& due : due_) {
      // Over the links, with the stages inside before and after them; and never before the ways
      // inside have moved what they must.
      const RoundJobs& round = *rounds_[due.bucket];
      const ExchangeJob& job = round.jobs[due.job];
      double ready = due.ready;
      for (int member : round.members_of(due.job)) {
        if (!options_.one_at_a_time || due.bucket == 0) break;
        ready =
            std::max(ready, arrived_[static_cast<std::size_t>(member) * buckets_ + due.bucket - 1]);
      }
      const double served = std::max(occupy(round.links_of(due.job), ready) + job.inside_s,
                                     occupy(round.pairs_of(due.job), ready) + job.link_s) +
                            job.latency_s;
      for (int member : round.members_of(due.job)) {
        double& arrived = arrived_[static_cast<std::size_t>(member) * buckets_ + due.bucket];
        arrived = std::max(arrived, served);
      }
    }
    if (is_beside()) copy_in();
    jobs_.forget_before(t);
  }

  const Workload& work_;
  const Schedule& schedule_;
  const MaxPlusOptions& options_;
  std::size_t buckets_;
  std::size_t workers_;
  JobTable jobs_;
  std::vector<double> shares_;  ///< by bucket, of the elements
  std::vector<double> begin_;
  std::vector<double> compute_;
  std::vector<double> updated_;
  std::vector<double> arrived_;
  std::vector<double> free_;  ///< by station
  std::vector<double> busy_;  ///< by station, since the beginning
  std::vector<Due> due_;
  std::vector<const RoundJobs*> rounds_;  ///< by bucket, of this step
  DeviceQueues<double> devices_;
  std::vector<double> host_rates_;  ///< by worker, or empty
  std::vector<BusyThread> threads_;
  std::vector<double> left_;      ///< when payloads are in the host's memory
  std::vector<char> takes_part_;  ///< by worker
  std::vector<std::size_t> order_;
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double busiest_link(std::span<const double> seconds, const Stations& stations) {
  return std::ranges::max(seconds.first(static_cast<std::size_t>(stations.links())));
}

/// Whether all have moved by the same time, which is the last that has: then a recursion whose
/// compute times do not change goes on like this for ever.
class Steadiness {
 public:
  Steadiness(const Workload& work, const Schedule& schedule)
      : period_(schedule.period),
        can_be_(schedule.period > 0 && work.compute.jitter == Jitter::constant) {}

  /// The state after a step.
  void add(const Recursion& recursion) {
    if (!can_be_) return;
    states_.push_back(recursion.begin());
    const auto& arrived = recursion.arrived();
    states_.back().insert(states_.back().end(), arrived.begin(), arrived.end());
    if (std::ssize(states_) > 2 * period_ + 1) states_.pop_front();
    busy_.push_back(recursion.busy());
    if (std::ssize(busy_) > period_ + 1) busy_.pop_front();
  }
  const std::vector<double>& busy_one_period_ago() const { return busy_.front(); }

  /// For two periods.
  bool is_reached() const {
    if (!can_be_ || std::ssize(states_) < 2 * period_ + 1) return false;
    const auto& last = states_.back();
    const auto& middle = states_[static_cast<std::size_t>(period_)];
    const auto& first = states_.front();
    const double moved = last[0] - middle[0];
    const double rounding = kRounding * (1 + last[0]);
    for (std::size_t k = 0; k < last.size(); ++k) {
      if (last[k] == 0 && middle[k] == 0) continue;  // alone in this round
      if (std::abs(last[k] - middle[k] - moved) > rounding) return false;
      if (std::abs(middle[k] - first[k] - moved) > rounding) return false;
    }
    return true;
  }

 private:
  static constexpr double kRounding = 1e-12;

  std::int64_t period_;
  bool can_be_;
  std::deque<std::vector<double>> states_;
  std::deque<std::vector<double>> busy_;
};

/// The steps that follow in a steady state.
void go_on_alike(std::vector<std::vector<double>>& start_s, std::int64_t period, int steps) {
  const auto p = static_cast<std::size_t>(period);
  const double moved = start_s.back()[0] - start_s[start_s.size() - 1 - p][0];
  while (std::ssize(start_s) <= steps) {
    start_s.push_back(start_s[start_s.size() - p]);
    for (double& start : start_s.back()) start += moved;
  }
}

}  // namespace

MaxPlusOptions allreduce_options() {
  return {.launch_at = LaunchAt::backward,
          .result_needed = ResultNeeded::same_step,
          .updates_last = true,
          .stagger = false,
          .one_at_a_time = true,
          .device_copies = DeviceCopies::none,
          .host_works = false,
          .plan = {.group_method = GroupMethod::ring, .finished_averages = true}};
}

StepTimes step_times(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
                     const MaxPlusOptions& options) {
  check(cluster, work, schedule, options);
  Recursion recursion(cluster, work, schedule, options);
  const int measured = measured_steps(schedule, options.steps);
  const int all = options.warm_up + measured;
  StepTimes times{.start_s = {recursion.begin()}, .warm_up = options.warm_up};
  Steadiness steadiness(work, schedule);
  std::vector<double> busy_before = recursion.busy();
  int done = 0;
  for (; done < all && !steadiness.is_reached(); ++done) {
    recursion.step(done);
    times.start_s.push_back(recursion.begin());
    steadiness.add(recursion);
    if (done + 1 == options.warm_up) busy_before = recursion.busy();
    if (done >= options.warm_up) times.compute_s += mean(recursion.compute()) / measured;
  }
  std::vector<double> busy = recursion.busy();
  int counted = measured;
  if (done < all) {
    times.compute_s = mean(recursion.compute());
    go_on_alike(times.start_s, schedule.period, all);
    busy_before = steadiness.busy_one_period_ago();
    counted = schedule.period;
  }
  times.compute_s += work.update_s;
  const auto& first = times.start_s[static_cast<std::size_t>(options.warm_up)];
  times.mean_step_s = (mean(times.start_s.back()) - mean(first)) / measured;
  times.exposed_s = std::max(0.0, times.mean_step_s - times.compute_s);
  for (std::size_t s = 0; s < busy.size(); ++s) busy[s] = (busy[s] - busy_before[s]) / counted;
  times.link_s = busiest_link(busy, recursion.stations());
  return times;
}

double busiest_link_s(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
                      const MaxPlusOptions& options, std::int64_t t) {
  check(cluster, work, schedule, options);
  JobTable jobs = job_table(cluster, work, schedule, options);
  std::vector<double> seconds(static_cast<std::size_t>(jobs.stations().links()));
  for (std::size_t b = 0; b < work.buckets.size(); ++b) {
    const std::int64_t round = round_of(schedule, options, t, b);
    for (const StationTime& use : jobs.at(round, options.payloads * work.buckets[b]).links) {
      seconds[static_cast<std::size_t>(use.station)] += use.seconds;
    }
  }
  return busiest_link(seconds, jobs.stations());
}

}  // namespace gossamer
