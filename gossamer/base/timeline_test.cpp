#include "gossamer/base/timeline.h"

#include <gtest/gtest.h>

#include <sstream>

#include "gossamer/base/json.h"

namespace gossamer {
namespace {

using namespace std::chrono_literals;
using Kind = TimelineEvent::Kind;

Json traced(const std::vector<TimelineEvent>& events,
            const std::vector<TimelineMessage>& messages) {
  std::ostringstream out;
  write_trace(out, events, messages, even_hosts(2, 2));
  return Json::parse(out.str());
}

TEST(WriteTrace, NamesOnlyWhatHasEvents) {
  EXPECT_EQ(traced({}, {})["traceEvents"], Json::array());
  const Json trace = traced({{.kind = Kind::wait, .worker = 3}}, {});
  ASSERT_EQ(trace["traceEvents"].size(), 3u);
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "worker 3, host 1");
  EXPECT_EQ(trace["traceEvents"][1]["args"]["name"], "work");
}

TEST(WriteTrace, CountsInMicrosecondsToTheNanosecond) {
  const Json event = {{"ph", "X"}, {"name", "exchange"}, {"pid", 1},
                      {"tid", 3},  {"ts", 1.001},        {"dur", 15139.711}};
  Json trace = traced({{Kind::exchange, 1, 7, 2, 1001ns, 15140712ns}}, {});
  Json found = trace["traceEvents"].back();
  EXPECT_EQ(found["args"], Json({{"step", 7}, {"bucket", 2}}));
  found.erase("args");
  EXPECT_EQ(found, event);
}

TEST(WriteTrace, ShowsMessagesWhileTheirBytesMove) {
  const TimelineMessage message{.sent = 1us,
                                .begun = 2us,
                                .left = 5us,
                                .arrived = 6us,
                                .from = 2,
                                .to = 0,
                                .bytes = 99,
                                .step = 4,
                                .bucket = 1,
                                .phase = 3};
  const Json trace = traced({}, {message, message});
  ASSERT_EQ(trace["traceEvents"].size(), 4u);
  EXPECT_EQ(trace["traceEvents"][1]["args"]["name"], "2 to 0");
  const Json& found = trace["traceEvents"][3];
  EXPECT_EQ(found["pid"], 4);
  EXPECT_EQ(found["ts"], 2.0);
  EXPECT_EQ(found["dur"], 3.0);
  EXPECT_EQ(
      found["args"],
      Json({{"step", 4}, {"phase", 3}, {"bytes", 99}, {"sent_us", 1.0}, {"arrived_us", 6.0}}));
}

}  // namespace
}  // namespace gossamer
