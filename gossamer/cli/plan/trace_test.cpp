#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

using program_run::content_of;
using program_run::run;

using Track = std::pair<int, int>;

/// The events of a trace by their phase.
std::map<std::string, std::vector<Json>> traced(const std::string& method) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("gossamer-trace-" + std::to_string(::getpid()) + ".json");
  const auto done = run("simulate " + method +
                        " --hosts 3 --per-host 2 --parameters 2M --buckets 3 --warm-up 2 --steps 8"
                        " --deviation 10ms --trace " +
                        path.string());
  EXPECT_EQ(done.code, 0) << done.err;
  const Json trace = Json::parse(content_of(path));
  std::filesystem::remove(path);
  std::map<std::string, std::vector<Json>> found;
  for (const Json& event : trace["traceEvents"]) found[event["ph"]].push_back(event);
  return found;
}

/// Whether something is shown on the track at the time, as Perfetto asks it of an arrow's ends.
bool is_inside(const std::map<Track, std::vector<std::pair<double, double>>>& shown,
               const Json& end) {
  const auto track = shown.find({end["pid"], end["tid"]});
  if (track == shown.end()) return false;
  const double ts = end["ts"];
  for (const auto& [from, to] : track->second) {
    if (from <= ts && ts < to) return true;
  }
  return false;
}

TEST(SimulatedTrace, ArrowsEndInsideOfExchangesAndCountersAtZero) {
  for (const char* method : {"ddp", "allreduce", "aer", "ring", "atc@one_peer_exponential"}) {
    std::map<std::string, std::vector<Json>> events = traced(method);
    std::map<Track, std::vector<std::pair<double, double>>> shown;
    for (const Json& event : events["X"]) {
      const double ts = event["ts"];
      shown[{event["pid"], event["tid"]}].emplace_back(ts, ts + event["dur"].get<double>());
    }
    std::map<int, Json> begins;
    for (const Json& begin : events["s"]) {
      EXPECT_TRUE(begins.emplace(begin["id"], begin).second) << method;
      EXPECT_TRUE(is_inside(shown, begin)) << method << begin;
    }
    EXPECT_GT(begins.size(), 8u) << method;
    EXPECT_EQ(events["f"].size(), begins.size()) << method;
    for (const Json& end : events["f"]) {
      const Json& begin = begins.at(end["id"]);
      EXPECT_TRUE(is_inside(shown, end)) << method << end;
      EXPECT_LE(begin["ts"].get<double>(), end["ts"].get<double>()) << method;
      EXPECT_NE(begin["pid"], end["pid"]) << method;
      EXPECT_EQ(begin["name"], end["name"]);
      EXPECT_EQ(begin["cat"], end["cat"]);
    }
    std::map<std::string, Json> last;
    for (const Json& count : events["C"]) {
      EXPECT_GE(count["args"]["value"].get<double>(), -1e-6) << method;
      last[count["name"]] = count;
    }
    ASSERT_EQ(last.size(), 2u) << method;
    for (const auto& [name, count] : last) EXPECT_EQ(count["args"]["value"], 0) << method << name;
  }
}

}  // namespace
}  // namespace gossamer
