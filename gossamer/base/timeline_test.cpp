#include "gossamer/base/timeline.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

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
  ASSERT_GE(trace["traceEvents"].size(), 4u);
  EXPECT_EQ(trace["traceEvents"][1]["args"]["name"], "2 to 0");
  const Json& found = trace["traceEvents"][3];
  EXPECT_EQ(found["pid"], 4);
  EXPECT_EQ(found["ts"], 2.0);
  EXPECT_EQ(found["dur"], 3.0);
  EXPECT_EQ(
      found["args"],
      Json({{"step", 4}, {"phase", 3}, {"bytes", 99}, {"sent_us", 1.0}, {"arrived_us", 6.0}}));
}

std::vector<Json> with_phase(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

/// Worker 0 of the first host sends 99 bytes to worker 2 of the second, in two messages.
std::vector<TimelineMessage> two_messages() {
  TimelineMessage first{.sent = 1us,
                        .begun = 2us,
                        .left = 4us,
                        .arrived = 5us,
                        .from = 0,
                        .to = 2,
                        .bytes = 33,
                        .step = 4,
                        .bucket = 1};
  TimelineMessage second = first;
  second.sent = 3us;
  second.begun = 4us;
  second.left = 6us;
  second.arrived = 7us;
  second.bytes = 66;
  return {first, second};
}

TEST(WriteTrace, AnArrowLeadsFromTheSendersExchangeToTheReceivers) {
  const std::vector<TimelineEvent> exchanges{{Kind::exchange, 0, 4, 1, 1us, 9us},
                                             {Kind::exchange, 2, 4, 1, 2us, 7us}};
  const Json trace = traced(exchanges, two_messages());
  const std::vector<Json> begins = with_phase(trace, "s");
  const std::vector<Json> ends = with_phase(trace, "f");
  ASSERT_EQ(begins.size(), 1u) << "of the last message";
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(begins[0]["id"], ends[0]["id"]);
  EXPECT_EQ(begins[0]["cat"], ends[0]["cat"]);
  EXPECT_EQ(begins[0]["pid"], 0);
  EXPECT_EQ(begins[0]["tid"], 2) << "the track of bucket 1";
  EXPECT_EQ(begins[0]["ts"], 3.0);
  EXPECT_EQ(ends[0]["pid"], 2);
  EXPECT_EQ(ends[0]["tid"], 2);
  EXPECT_EQ(ends[0]["ts"], 6.999) << "inside of what ends at 7";
  EXPECT_EQ(ends[0]["bp"], "e") << "what encloses it, not what follows";
}

TEST(WriteTrace, ThereIsNoArrowToWhatIsNotShown) {
  const std::vector<TimelineEvent> exchanges{{Kind::exchange, 0, 4, 1, 1us, 9us}};
  EXPECT_TRUE(with_phase(traced(exchanges, two_messages()), "s").empty());
}

TEST(WriteTrace, CountsTheBytesUnderWayAndTheirRate) {
  const auto values = [](const Json& trace, const char* name) {
    std::vector<std::pair<double, double>> found;
    for (const Json& event : with_phase(trace, "C")) {
      if (event["name"] == name) found.emplace_back(event["ts"], event["args"]["value"]);
    }
    return found;
  };
  const Json trace = traced({}, two_messages());
  const std::vector<std::pair<double, double>> bytes{{2, 33}, {4, 99}, {5, 66}, {7, 0}};
  EXPECT_EQ(values(trace, "bytes under way"), bytes);
  // 33 bytes in 2 µs, then 66 in 2 µs.
  const std::vector<std::pair<double, double>> rate{{2, 0.132}, {4, 0.264}, {6, 0}};
  EXPECT_EQ(values(trace, "Gbit/s between hosts"), rate);
  std::vector<TimelineMessage> inside = two_messages();
  for (TimelineMessage& message : inside) message.to = 1;
  EXPECT_TRUE(values(traced({}, inside), "Gbit/s between hosts").empty());
}

TEST(WriteTrace, CountersOfALongTraceAreShort) {
  std::vector<TimelineMessage> messages(20'000, two_messages().front());
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const std::chrono::nanoseconds shift = static_cast<int>(k) * 1us;
    messages[k].begun += shift;
    messages[k].left += shift;
    messages[k].arrived += shift;
  }
  const std::vector<Json> counts = with_phase(traced({}, messages), "C");
  EXPECT_GT(counts.size(), 2000u);
  EXPECT_LT(counts.size(), 4100u);
  EXPECT_EQ(counts.back()["args"]["value"], 0);
}

}  // namespace
}  // namespace gossamer
