#include "gossamer/base/timeline_flows.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace gossamer {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t kMostCounts = 2000;

/// The exchanges of a bucket of a worker follow each other.
class Exchanges {
 public:
  explicit Exchanges(std::span<const TimelineEvent> events) {
    for (const TimelineEvent& event : events) {
      if (event.kind != TimelineEvent::Kind::exchange || event.end <= event.begin) continue;
      by_begin_[{event.worker, event.bucket}][event.begin] = &event;
      by_step_[{event.worker, event.bucket, event.step}] = &event;
    }
  }

  /// The exchange at that moment, else the one of the step; null where there is none.
  const TimelineEvent* find(int worker, int bucket, std::int64_t step, nanoseconds at) const {
    if (const auto found = by_begin_.find({worker, bucket}); found != by_begin_.end()) {
      auto after = found->second.upper_bound(at);
      if (after != found->second.begin() && at <= std::prev(after)->second->end) {
        return std::prev(after)->second;
      }
    }
    const auto found = by_step_.find({worker, bucket, step});
    return found == by_step_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::pair<int, int>, std::map<nanoseconds, const TimelineEvent*>> by_begin_;
  std::map<std::tuple<int, int, std::int64_t>, const TimelineEvent*> by_step_;
};

/// The end of an event is no longer part of it.
nanoseconds inside(const TimelineEvent& event, nanoseconds at) {
  return std::clamp(at, event.begin, event.end - nanoseconds{1});
}

/// How a quantity changes, in any order, to what it is.
std::vector<TimelineCount> summed(std::vector<TimelineCount> changes) {
  std::vector<TimelineCount> counts;
  if (changes.empty()) return counts;
  std::ranges::stable_sort(changes, {}, &TimelineCount::at);
  const nanoseconds first = changes.front().at;
  const nanoseconds piece = std::max((changes.back().at - first) / kMostCounts, nanoseconds{1});
  const bool is_whole = static_cast<std::int64_t>(changes.size()) <= kMostCounts;
  double value = 0;
  for (const TimelineCount& change : changes) {
    value += change.value;
    const bool is_same = !counts.empty() && (is_whole ? counts.back().at == change.at
                                                      : (counts.back().at - first) / piece ==
                                                            (change.at - first) / piece);
    if (is_same) counts.pop_back();
    counts.push_back({change.at, value});
  }
  counts.back().value = 0;  // but for rounding
  return counts;
}

}  // namespace

std::vector<TimelineArrow> arrows_of(std::span<const TimelineEvent> events,
                                     std::span<const TimelineMessage> messages) {
  std::map<std::tuple<int, int, std::int64_t, int>, const TimelineMessage*> last;
  for (const TimelineMessage& message : messages) {
    const TimelineMessage*& known = last[{message.from, message.to, message.step, message.bucket}];
    if (known == nullptr || known->arrived < message.arrived) known = &message;
  }
  const Exchanges exchanges(events);
  std::vector<TimelineArrow> arrows;
  for (const auto& [key, message] : last) {
    const auto [from, to, step, bucket] = key;
    const TimelineEvent* sender = exchanges.find(from, bucket, step, message->sent);
    const TimelineEvent* receiver = exchanges.find(to, bucket, step, message->arrived);
    if (sender == nullptr || receiver == nullptr) continue;
    const nanoseconds begin = inside(*sender, message->sent);
    const nanoseconds end = inside(*receiver, message->arrived);
    if (begin <= end) arrows.push_back({from, to, bucket, begin, end});
  }
  return arrows;
}

std::vector<TimelineCount> bytes_under_way(std::span<const TimelineMessage> messages) {
  std::vector<TimelineCount> changes;
  for (const TimelineMessage& message : messages) {
    const auto bytes = static_cast<double>(message.bytes);
    changes.push_back({message.begun, bytes});
    changes.push_back({message.arrived, -bytes});
  }
  return summed(std::move(changes));
}

std::vector<TimelineCount> rate_between_hosts(std::span<const TimelineMessage> messages,
                                              const HostShape& shape) {
  std::vector<TimelineCount> changes;
  for (const TimelineMessage& message : messages) {
    if (shape.host_of(message.from) == shape.host_of(message.to)) continue;
    if (message.left <= message.begun) continue;
    const auto length = static_cast<double>((message.left - message.begun).count());
    const double rate = 8 * static_cast<double>(message.bytes) / length;  // bits per ns
    changes.push_back({message.begun, rate});
    changes.push_back({message.left, -rate});
  }
  return summed(std::move(changes));
}

}  // namespace gossamer
