#include "gossamer/engine/recorder.h"

#include <gtest/gtest.h>

#include <map>
#include <span>
#include <sstream>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/json.h"
#include "gossamer/engine/tags.h"
#include "gossamer/engine/testing/recorded_case.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace recorder_test {

using namespace engine_case;  // NOLINT: all of it is about this test
using namespace std::chrono_literals;
using Kind = TimelineEvent::Kind;

constexpr std::int64_t kSteps = 6;

Case case_of(const std::string& pattern, UpdateAt update, double clip_norm = 0) {
  Case c{.bucket_sizes = {700, 40, 300}, .steps = kSteps};
  c.options.schedule = make_topology("aer", {.shape = even_hosts(2, 2)});
  c.options.pattern = pattern;
  c.options.update = update;
  c.options.clip_norm = clip_norm;
  c.group_of.assign(1040, 0);
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> all = {case_of("cwa", UpdateAt::step, 1),
                           case_of("cwa", UpdateAt::backward),
                           case_of("atc", UpdateAt::step),
                           case_of("allreduce", UpdateAt::step, 1),
                           case_of("allreduce", UpdateAt::backward, 1),
                           case_of("gradient_tracking_atc", UpdateAt::step)};
  all.push_back(case_of("cwa", UpdateAt::step));
  all.back().spares = true;  // payloads are lent
  all.push_back(case_of("cwa", UpdateAt::step));
  all.back().options.codec = Codec::int8;
  return all;
}

std::string words(const Case& c) {
  return c.options.pattern + (c.options.update == UpdateAt::step ? "" : ", in the backward");
}

Clock::time_point at(std::chrono::nanoseconds time) { return Clock::time_point(time); }

TEST(Recorder, WhatAWorkerDoesFillsItsStepsWithoutGaps) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(words(c));
    for (const Recorded& worker : recorded_run(c, kSteps)) {
      const std::deque<TimelineEvent>& work = worker.records.work;
      ASSERT_FALSE(work.empty());
      double waited_s = 0;
      std::map<std::pair<std::int64_t, Kind>, std::map<int, int>> seen;  // by step, kind and bucket
      for (std::size_t k = 0; k < work.size(); ++k) {
        EXPECT_EQ(work[k].worker, worker.records.worker);
        EXPECT_LE(work[k].begin, work[k].end);
        if (k > 0) {
          EXPECT_EQ(work[k].begin, work[k - 1].end);
          EXPECT_GE(work[k].step, work[k - 1].step);
        }
        ++seen[{work[k].step, work[k].kind}][work[k].bucket];
        const bool in_last = work[k].step == kSteps - 1 && work[k].kind == Kind::wait;
        if (in_last) waited_s += std::chrono::duration<double>(work[k].end - work[k].begin).count();
      }
      for (std::int64_t step = 0; step < kSteps; ++step) {
        EXPECT_EQ((seen[{step, Kind::forward}][-1]), 1);
        for (int b = 0; b < 3; ++b) {
          EXPECT_EQ((seen[{step, Kind::backward}][b]), 1);
          EXPECT_GE((seen[{step, Kind::update}][b]), 1);
        }
      }
      EXPECT_EQ(work.back().step, kSteps - 1);
      EXPECT_TRUE(waited_s == 0 || worker.last.exposed_s > 0);
    }
  }
}

TEST(Recorder, HasAnExchangePerBucketStageAndStep) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(words(c));
    for (const Recorded& worker : recorded_run(c, kSteps)) {
      std::map<std::pair<std::int64_t, int>, int> seen;
      std::map<int, std::chrono::nanoseconds> reached;
      for (const TimelineEvent& event : worker.records.exchanges) {
        EXPECT_LE(reached[event.bucket], event.begin);
        EXPECT_LE(event.begin, event.end);
        reached[event.bucket] = event.end;
        ++seen[{event.step, event.bucket}];
      }
      EXPECT_EQ(seen.size(), 3u * kSteps);
      const int stages = find_pattern(c.options.pattern).stages();
      for (const auto& [key, count] : seen) EXPECT_EQ(count, stages);
    }
  }
}

TEST(Recorder, HasEveryByteThatTheTransportCarried) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(words(c));
    const std::vector<Recorded> all = recorded_run(c, kSteps);
    std::map<std::pair<int, int>, int> balance;
    for (const Recorded& worker : all) {
      std::map<int, EdgeBytes> expected;
      for (const MessageEnd& end : worker.records.sent) {
        expected[end.peer].sent += end.bytes;
        ++balance[{worker.records.worker, end.peer}];
      }
      for (const MessageEnd& end : worker.records.arrived) {
        expected[end.peer].received += end.bytes;
        --balance[{end.peer, worker.records.worker}];
      }
      ASSERT_EQ(expected.size(), worker.carried.edges.size());
      for (const EdgeBytes& edge : worker.carried.edges) {
        EXPECT_GT(edge.sent, 0);
        EXPECT_EQ(edge.sent, expected[edge.peer].sent);
        EXPECT_EQ(edge.received, expected[edge.peer].received);
      }
    }
    for (const auto& [edge, rest] : balance) EXPECT_EQ(rest, 0);
  }
}

TEST(Recorder, SeesMessagesThatNobodyWaitsFor) {
  Case c = case_of("cwa", UpdateAt::step);
  c.options.late = Late::skip;
  std::map<std::tuple<int, int, Tag>, std::pair<std::int64_t, std::int64_t>> sent;  // step, bytes
  std::vector<Records> all;
  for (const Recorded& worker : recorded_run(c, kSteps)) {
    for (const MessageEnd& end : worker.records.sent) {
      sent[{worker.records.worker, end.peer, end.tag}] = {end.step, end.bytes};
    }
    std::map<int, std::int64_t> arrived;
    for (const MessageEnd& end : worker.records.arrived) arrived[end.peer] += end.bytes;
    for (const EdgeBytes& edge : worker.carried.edges) {
      EXPECT_LE(arrived[edge.peer], edge.received);
    }
    all.push_back(worker.records);
  }
  std::int64_t messages = 0;
  for (const Records& records : all) {
    for (const MessageEnd& end : records.arrived) {
      const auto other = sent.find({end.peer, records.worker, end.tag});
      ASSERT_NE(other, sent.end());
      EXPECT_EQ(other->second.second, end.bytes);
      if (other->second.first < kSteps) ++messages;
    }
  }
  EXPECT_GT(messages, 0);
  EXPECT_EQ(std::ssize(timeline_of(all, at(0ns)).messages), messages);
}

TEST(Recorder, ForgetsWhatIsOlderThanTheLastSteps) {
  for (const Recorded& worker : recorded_run(case_of("cwa", UpdateAt::step), 2)) {
    EXPECT_EQ(worker.records.work.front().step, kSteps - 2);
    EXPECT_EQ(worker.records.exchanges.front().step, kSteps - 2);
    EXPECT_EQ(worker.records.sent.front().step, kSteps - 2);
    EXPECT_FALSE(worker.records.arrived.empty());
    for (const MessageEnd& end : worker.records.arrived) EXPECT_GE(end.step, kSteps - 2);
  }
}

TEST(Recorder, LeavesPausesOut) {
  Recorder recorder(3, 1);
  recorder.begin_step(5);
  recorder.did(Kind::update, 1);
  recorder.did(Kind::update, 1);
  recorder.did(Kind::update, 1);
  recorder.resume();
  recorder.did(Kind::update, 1);
  const std::deque<TimelineEvent> work = recorder.records().work;
  ASSERT_EQ(work.size(), 2u);  // the first three are one
  EXPECT_LE(work[0].end, work[1].begin);
  EXPECT_EQ(work[0].step, 5);
}

TEST(Recorder, BeginsAfreshWhereARunGoesBack) {
  Recorder recorder(3, 10);
  const Interval journey{.begin = at(5ns), .end = at(7ns)};
  for (const std::int64_t step : {5, 6, 3}) {
    recorder.begin_step(step);
    recorder.did(Kind::update);
    recorder.exchanged(0, {&journey, 1});
    recorder.arrived({.peer = 1, .step = step});
  }
  const Records records = recorder.records();
  ASSERT_EQ(records.work.size(), 1u);
  ASSERT_EQ(records.exchanges.size(), 1u);
  ASSERT_EQ(records.arrived.size(), 1u);
  EXPECT_EQ(records.work[0].step, 3);
  EXPECT_EQ(records.arrived[0].step, 3);
}

TEST(Recorder, KeepsNoExchangeInWhichNothingWasToBeReceived) {
  Recorder recorder(0, 1);
  const std::vector<Interval> journeys{{.begin = at(3ns), .end = {}}, {at(5ns), at(7ns)}};
  recorder.exchanged(0, std::span(journeys).first(1));
  EXPECT_TRUE(recorder.records().exchanges.empty());
  recorder.exchanged(0, journeys);
  ASSERT_EQ(recorder.records().exchanges.size(), 1u);
  EXPECT_EQ(recorder.records().exchanges[0].begin, 5ns);
  EXPECT_EQ(recorder.records().exchanges[0].end, 7ns);
}

TEST(SteadyAt, IsAsFarFromNowAsTheMoment) {
  const auto now = std::chrono::system_clock::now();
  EXPECT_LE(steady_at(now), Clock::now());
  const auto apart = steady_at(now + 1h) - steady_at(now);
  EXPECT_NEAR(std::chrono::duration<double>(apart).count(), 3600, 1);
}

TEST(TimelineOf, ShowsOneMessageOfAnEdgeAfterTheOther) {
  Records sender{.worker = 0};
  Records receiver{.worker = 1};
  const Tag first{.step = 4, .stream = 0, .slot = 2};
  const Tag second{.step = 4, .stream = 2, .slot = 2};
  sender.sent = {{1, first, 4, 1, 10, at(1000ns)}, {1, second, 4, 1, 20, at(1100ns)}};
  receiver.arrived = {{0, second, 4, 0, 20, at(1500ns)}, {0, first, 4, 0, 10, at(1300ns)}};
  const std::vector<Records> all{sender, receiver};
  const Timeline timeline = timeline_of(all, at(900ns));
  ASSERT_EQ(timeline.messages.size(), 2u);
  const TimelineMessage expected{.sent = 100ns,
                                 .begun = 100ns,
                                 .left = 400ns,
                                 .arrived = 400ns,
                                 .from = 0,
                                 .to = 1,
                                 .bytes = 10,
                                 .step = 4,
                                 .bucket = 0,
                                 .phase = 1};
  EXPECT_EQ(timeline.messages[0], expected);
  EXPECT_EQ(timeline.messages[1].sent, 200ns);
  EXPECT_EQ(timeline.messages[1].begun, 400ns);
  EXPECT_EQ(timeline.messages[1].arrived, 600ns);
}

TEST(TimelineOf, TakesTheLaunchWhereTheSenderIsElsewhere) {
  Records receiver{.worker = 1};
  receiver.exchanges = {{Kind::exchange, 1, 4, 0, 700ns, 900ns}};
  receiver.arrived = {{0, {4, 0, 2}, 4, 3, 10, at(900ns)}, {2, {4, 0, 2}, 4, 3, 10, at(600ns)}};
  const Timeline timeline = timeline_of({&receiver, 1}, at(0ns));
  ASSERT_EQ(timeline.messages.size(), 2u);
  EXPECT_EQ(timeline.messages[0].begun, 700ns);
  EXPECT_EQ(timeline.messages[0].left, 900ns);
  EXPECT_EQ(timeline.messages[0].phase, 3);
  EXPECT_EQ(timeline.messages[1].begun, 600ns);  // it came before this worker launched its own
}

TEST(TimelineOf, FindsTheBucketOfAStream) {
  Records receiver{.worker = 1};
  const int second = static_cast<int>(kMaxVectors);  // of the engine's streams
  for (const int each :
       {0, second - 1, second, stream::kGradients, stream::of_gradients(3), stream::kPresence}) {
    receiver.arrived.push_back({.peer = 0, .tag = {.step = 0, .stream = each}, .at = at(9ns)});
  }
  receiver.work = {{.worker = 1}};
  std::vector<int> buckets;
  for (const TimelineMessage& message : timeline_of({&receiver, 1}, at(0ns)).messages) {
    buckets.push_back(message.bucket);
  }
  EXPECT_EQ(buckets, (std::vector<int>{0, 0, 1, 0, 3, -1}));
}

TEST(TimelineOf, IsWrittenAsATraceWithoutOverlaps) {
  const Case c = case_of("cwa", UpdateAt::step);
  std::vector<Records> all;
  std::int64_t sent = 0;
  for (const Recorded& worker : recorded_run(c, kSteps)) {
    all.push_back(worker.records);
    for (const MessageEnd& end : worker.records.sent) {
      if (end.step < kSteps) sent += end.bytes;  // the last step sends ahead
    }
  }
  EXPECT_GT(sent, 0);
  const Timeline timeline = timeline_of(all, Clock::time_point(all[0].work[0].begin));
  std::ostringstream out;
  write_trace(out, timeline.events, timeline.messages, c.shape());
  std::map<std::pair<int, int>, double> reached_us;
  std::int64_t bytes = 0;
  const Json trace = Json::parse(out.str());
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::pair<int, int> track{event["pid"], event["tid"]};
    const auto [reached, is_first] = reached_us.try_emplace(track, -1e9);
    EXPECT_GE(event["ts"].get<double>(), reached->second - 1e-6);
    EXPECT_GE(event["dur"].get<double>(), 0);
    reached->second = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["pid"] == 4) bytes += event["args"]["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(bytes, sent);
}

}  // namespace recorder_test
}  // namespace gossamer
