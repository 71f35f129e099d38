#include "gossamer/engine/recorder.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "gossamer/algo/pattern.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kShortestWait{1000};

nanoseconds since_epoch(Clock::time_point at) {
  return std::chrono::duration_cast<nanoseconds>(at.time_since_epoch());
}

/// Those that lie behind a later one's, because buckets are not at the same step, may stay.
template <class Entry>
void forget_before(std::int64_t step, std::deque<Entry>& entries) {
  while (!entries.empty() && entries.front().step < step) entries.pop_front();
}

template <class Entry>
void forget_all_before(std::int64_t step, std::deque<Entry>& entries) {
  std::erase_if(entries, [&](const Entry& entry) { return entry.step < step; });
}

template <class Forget>
void for_each_list(Records& records, const Forget& forget) {
  forget(records.work);
  forget(records.exchanges);
  forget(records.sent);
  forget(records.arrived);
}

int bucket_of(const Tag& tag) { return stream::bucket_of(tag.stream); }

/// Finds the other end of messages, and when exchanges were launched.
class Ends {
 public:
  explicit Ends(std::span<const Records> all) {
    for (const Records& records : all) {
      for (const MessageEnd& end : records.sent) {
        sent_[{records.worker, end.peer, end.tag}] = &end;
      }
      for (const TimelineEvent& exchange : records.exchanges) {
        launched_[{records.worker, exchange.step, exchange.bucket}] = exchange.begin;
      }
    }
  }
  TimelineMessage message(int worker, const MessageEnd& end) const {
    const nanoseconds at = since_epoch(end.at);
    TimelineMessage message{.sent = at,
                            .arrived = at,
                            .from = end.peer,
                            .to = worker,
                            .bytes = end.bytes,
                            .step = end.step,
                            .bucket = bucket_of(end.tag),
                            .phase = end.phase};
    const auto sent = sent_.find({end.peer, worker, end.tag});
    const auto launched = launched_.find({worker, message.step, message.bucket});
    if (sent != sent_.end()) {
      message.sent = since_epoch(sent->second->at);
      message.step = sent->second->step;
      message.phase = sent->second->phase;
    } else if (launched != launched_.end()) {
      message.sent = std::min(at, launched->second);
    }
    return message;
  }

 private:
  std::map<std::tuple<int, int, Tag>, const MessageEnd*> sent_;  ///< by sender, receiver and tag
  std::map<std::tuple<int, std::int64_t, int>, nanoseconds> launched_;
};

/// The messages are by edge and arrival.
void fill_edges(std::vector<TimelineMessage>& messages) {
  const TimelineMessage* before = nullptr;
  for (TimelineMessage& message : messages) {
    const bool follows =
        before != nullptr && before->from == message.from && before->to == message.to;
    message.begun = follows ? std::max(message.sent, before->arrived) : message.sent;
    message.left = message.arrived;
    before = &message;
  }
}

}  // namespace

Recorder::Recorder(int worker, std::int64_t steps)
    : steps_(steps), reached_(since_epoch(Clock::now())), records_{.worker = worker} {}

void Recorder::begin_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  const bool goes_back = step < std::exchange(step_, step);
  for_each_list(records_, [&](auto& entries) {
    if (goes_back) entries.clear();
    forget_before(step - steps_, entries);
  });
}

void Recorder::resume() {
  const std::lock_guard lock(mutex_);
  reached_ = since_epoch(Clock::now());
}

void Recorder::did(TimelineEvent::Kind kind, int bucket) {
  const nanoseconds now = since_epoch(Clock::now());
  const std::lock_guard lock(mutex_);
  if (kind == TimelineEvent::Kind::wait && now - reached_ < kShortestWait) return;
  const TimelineEvent event{kind, records_.worker, step_, bucket, reached_, now};
  reached_ = now;
  if (!records_.work.empty()) {
    TimelineEvent& last = records_.work.back();
    const bool goes_on =
        last.kind == kind && last.step == step_ && last.bucket == bucket && last.end == event.begin;
    if (goes_on) {
      last.end = now;
      return;
    }
  }
  records_.work.push_back(event);
}

void Recorder::exchanged(int bucket, std::span<const Interval> journeys) {
  Interval whole{.begin = Clock::time_point::max(), .end = {}};
  for (const Interval& journey : journeys) {
    if (journey.end == Clock::time_point{}) continue;
    whole.begin = std::min(whole.begin, journey.begin);
    whole.end = std::max({whole.end, journey.end, whole.begin});
  }
  if (whole.end == Clock::time_point{}) return;
  const std::lock_guard lock(mutex_);
  records_.exchanges.push_back({TimelineEvent::Kind::exchange, records_.worker, step_, bucket,
                                since_epoch(whole.begin), since_epoch(whole.end)});
}

void Recorder::sent(const MessageEnd& message) {
  const std::lock_guard lock(mutex_);
  records_.sent.push_back(message);
}

void Recorder::arrived(const MessageEnd& message) {
  const std::lock_guard lock(mutex_);
  records_.arrived.push_back(message);
}

std::int64_t Recorder::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}

void Recorder::set_start(std::chrono::system_clock::time_point start) {
  const std::lock_guard lock(mutex_);
  start_ = start;
}

std::chrono::system_clock::time_point Recorder::start() const {
  const std::lock_guard lock(mutex_);
  return start_;
}

Records Recorder::records() const {
  const std::lock_guard lock(mutex_);
  Records last = records_;
  for_each_list(last, [&](auto& entries) { forget_all_before(step_ - steps_, entries); });
  return last;
}

Timeline timeline_of(std::span<const Records> all, Clock::time_point origin) {
  Timeline timeline;
  const Ends ends(all);
  for (const Records& records : all) {
    for (const auto* events : {&records.work, &records.exchanges}) {
      timeline.events.insert(timeline.events.end(), events->begin(), events->end());
    }
    for (const MessageEnd& end : records.arrived) {
      timeline.messages.push_back(ends.message(records.worker, end));
    }
  }
  const auto last = std::ranges::max_element(timeline.events, {}, &TimelineEvent::step);
  if (last != timeline.events.end()) {
    std::erase_if(timeline.messages,
                  [&](const TimelineMessage& message) { return message.step > last->step; });
  }
  std::ranges::stable_sort(timeline.messages, {}, [](const TimelineMessage& m) {
    return std::tuple(m.from, m.to, m.arrived);
  });
  fill_edges(timeline.messages);
  const nanoseconds zero = since_epoch(origin);
  for (TimelineEvent& event : timeline.events) {
    event.begin -= zero;
    event.end -= zero;
  }
  for (TimelineMessage& message : timeline.messages) {
    for (nanoseconds* time : {&message.sent, &message.begun, &message.left, &message.arrived}) {
      *time -= zero;
    }
  }
  return timeline;
}

Clock::time_point steady_at(std::chrono::system_clock::time_point moment) {
  // Two clocks are never read at the same time: of some tries the one that took the shortest.
  constexpr int kTries = 8;
  Clock::time_point at;
  Clock::duration shortest = Clock::duration::max();
  for (int k = 0; k < kTries; ++k) {
    const auto before = Clock::now();
    const auto ago = std::chrono::system_clock::now() - moment;
    const auto took = Clock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    at = before + took / 2 - std::chrono::duration_cast<Clock::duration>(ago);
  }
  return at;
}

}  // namespace gossamer
