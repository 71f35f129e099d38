#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "gossamer/base/json.h"
#include "gossamer/base/timeline.h"
#include "gossamer/sim/sim_case.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

using namespace sim_case;
using Kind = TimelineEvent::Kind;

SimResult recorded(std::string_view pattern, UpdateAt update) {
  const ClusterSpec cluster = even_cluster(4, 2);
  SimMethod method = of_pattern(pattern, cwa("aer", cluster));
  method.update = update;
  const Workload workload{
      .buckets = even_buckets(5000, 3),
      .compute = {.jitter = Jitter::normal, .mean_s = 1e-5, .deviation_s = 2e-6},
      .update_s = 1e-6};
  SimOptions options{.steps = 6};
  options.record_messages = options.record_timeline = true;
  return simulate(cluster, workload, method, options);
}

TEST(Timeline, WhatAWorkerDoesFillsItsStepsWithoutGaps) {
  for (const auto& [pattern, update] : {std::pair{"cwa", UpdateAt::step},
                                        {"cwa", UpdateAt::backward},
                                        {"atc", UpdateAt::step},
                                        {"gradient_tracking_atc", UpdateAt::backward},
                                        {"allreduce", UpdateAt::backward},
                                        {"ddp", UpdateAt::backward}}) {
    const SimResult result = recorded(pattern, update);
    std::map<int, SimTime> reached;
    std::map<std::pair<int, std::int64_t>, SimTime> waited;
    for (const TimelineEvent& event : result.timeline) {
      if (event.kind == Kind::exchange) continue;
      EXPECT_EQ(event.begin, reached[event.worker]);
      reached[event.worker] = event.end;
      if (event.kind == Kind::wait) waited[{event.worker, event.step}] += event.end - event.begin;
    }
    for (int w = 0; w < 8; ++w) {
      const std::vector<SimStep>& steps = result.steps[static_cast<std::size_t>(w)];
      EXPECT_EQ(reached[w], steps.back().end);
      for (std::size_t t = 0; t < steps.size(); ++t) {
        EXPECT_EQ((waited[{w, static_cast<std::int64_t>(t)}]), steps[t].waited);
      }
    }
  }
}

TEST(Timeline, HasAnExchangePerWorkerBucketAndStep) {
  const SimResult result = recorded("cwa", UpdateAt::step);
  std::map<std::tuple<int, int, std::int64_t>, int> seen;
  for (const TimelineEvent& event : result.timeline) {
    if (event.kind == Kind::exchange) ++seen[{event.worker, event.bucket, event.step}];
  }
  EXPECT_EQ(seen.size(), 8u * 3 * 6);
  for (const auto& [key, count] : seen) EXPECT_EQ(count, 1);
}

TEST(Trace, IsJsonWithATrackPerEdge) {
  const SimResult result = recorded("cwa", UpdateAt::step);
  std::ostringstream out;
  write_trace(out, result.timeline, result.messages, even_hosts(4, 2),
              {.method = "aer", .steps = 4, .warm_up = 2});
  const Json trace = Json::parse(out.str());
  std::map<std::string, int> names;
  std::map<int, std::string> tracks;
  std::map<std::pair<int, int>, double> reached_us;
  std::int64_t bytes = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") {
      if (event["pid"] == 8 && event.contains("tid")) tracks[event["tid"]] = event["args"]["name"];
      ++names[event["args"]["name"]];
      continue;
    }
    if (event["ph"] != "X") continue;
    // Nothing overlaps on a track: viewers nest what does.
    double& reached = reached_us[{event["pid"], event["tid"]}];
    EXPECT_GE(event["ts"].get<double>(), reached - 1e-6);
    reached = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["pid"] == 8) bytes += event["args"]["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(trace["otherData"], Json({{"method", "aer"}, {"steps", 4}, {"warm_up", 2}}));
  EXPECT_EQ(names["worker 3, host 1"], 1);
  EXPECT_EQ(names["bucket 2"], 8);
  EXPECT_EQ(names["links"], 1);
  std::int64_t sent = 0;
  std::map<std::string, bool> pairs;
  for (const TimelineMessage& message : result.messages) {
    sent += message.bytes;
    pairs[std::to_string(message.from) + " to " + std::to_string(message.to)] = true;
  }
  EXPECT_EQ(bytes, sent);
  EXPECT_EQ(tracks.size(), pairs.size());
}

}  // namespace
}  // namespace gossamer
