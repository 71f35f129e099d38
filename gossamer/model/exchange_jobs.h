#pragma once
/// The exchanges of each step in seconds of the stations that serve them; used by max_plus.cpp.

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/model/host_work.h"
#include "gossamer/model/link_load.h"

namespace gossamer {

/// Note [Stations]: of every host what leaves it and what comes in, and the way from each worker to
/// each other one of its host. In a group that averages, all pairs of a host have about as much to
/// move, so that the group occupies one of them for all.
class Stations {
 public:
  explicit Stations(const HostShape& shape);
  int egress(int host) const { return 2 * host; }
  int ingress(int host) const { return 2 * host + 1; }
  /// What an exchange occupies inside a host on which it has two members or more.
  int way(const ExchangeLoad& load, int host) const;
  int links() const { return links_; }
  int count() const { return count_; }

 private:
  int links_;
  int count_;
  std::vector<int> first_rank_;  ///< by host
  std::vector<int> row_;         ///< by worker: the first station of its ways
};

struct StationTime {
  int station = 0;
  double seconds = 0;
};

/// An exchange of one bucket. Its parts stand in the lists of its RoundJobs, one after the other.
struct ExchangeJob {
  std::uint32_t members_end = 0;
  std::uint32_t links_end = 0;
  std::uint32_t pairs_end = 0;
  double link_s = 0;    ///< the longest use of a link, where stages inside come before or after
  double inside_s = 0;  ///< stages inside the hosts, before and after the links
  double latency_s = 0;
};

/// The exchanges of a round for buckets of one size. The lists are contiguous: the model walks
/// through thousands of exchanges per step.
struct RoundJobs {
  std::vector<ExchangeJob> jobs;
  std::vector<int> members;
  std::vector<StationTime> links;
  std::vector<StationTime> pairs;
  std::vector<HostWork> work;  ///< by worker; empty where no host has a limit

  std::span<const int> members_of(std::size_t job) const;
  std::span<const StationTime> links_of(std::size_t job) const;
  std::span<const StationTime> pairs_of(std::size_t job) const;
};

/// The jobs of a round for a bucket of `payload.elements`.
RoundJobs round_jobs(const Round& round, const ClusterSpec& cluster, const Stations& stations,
                     const ExchangedPayload& payload, double overhead);

/// The jobs of all rounds of a schedule, made when first asked for.
class JobTable {
 public:
  JobTable(const ClusterSpec& cluster, const Schedule& schedule, ExchangedPayload payload,
           double overhead);

  /// Those of round t for a bucket of so many elements; valid until forget_before() passes t.
  const RoundJobs& at(std::int64_t t, std::int64_t elements);
  const Stations& stations() const { return stations_; }
  /// Lets go of rounds that do not come back.
  void forget_before(std::int64_t t);

 private:
  const ClusterSpec& cluster_;
  const Stations stations_;
  const Schedule& schedule_;
  ExchangedPayload payload_;
  double overhead_;
  std::map<std::pair<std::int64_t, std::int64_t>, RoundJobs> jobs_;
};

}  // namespace gossamer
