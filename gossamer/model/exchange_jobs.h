#pragma once
/// The exchanges of each step in seconds of the stations that serve them; used by max_plus.cpp.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/model/link_load.h"

namespace gossamer {

/// Every host has three stations: what leaves it, what comes in, what moves inside.
inline constexpr int kStationsPerHost = 3;
inline constexpr bool is_link_station(int station) { return station % kStationsPerHost != 2; }

struct StationTime {
  int station = 0;
  double seconds = 0;
};

/// An exchange of one bucket.
struct ExchangeJob {
  std::vector<int> members;
  std::vector<StationTime> stations;
  double latency_s = 0;
};

/// The jobs of a round for a bucket of `payload.elements`.
std::vector<ExchangeJob> exchange_jobs(const Round& round, const ClusterSpec& cluster,
                                       const ExchangedPayload& payload, double overhead);

/// The jobs of all rounds of a schedule, made when first asked for.
class JobTable {
 public:
  JobTable(const ClusterSpec& cluster, const Schedule& schedule, ExchangedPayload payload,
           double overhead);

  /// Those of round t for a bucket of so many elements; valid until forget_before() passes t.
  const std::vector<ExchangeJob>& at(std::int64_t t, std::int64_t elements);
  /// Lets go of rounds that do not come back.
  void forget_before(std::int64_t t);

 private:
  const ClusterSpec& cluster_;
  const Schedule& schedule_;
  ExchangedPayload payload_;
  double overhead_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<ExchangeJob>> jobs_;
};

}  // namespace gossamer
