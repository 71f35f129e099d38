#include "gossamer/base/timeline.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "gossamer/base/json.h"
#include "gossamer/base/timeline_flows.h"

namespace gossamer {
namespace {

using Kind = TimelineEvent::Kind;

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::backward:
      return "backward";
    case Kind::update:
      return "update";
    case Kind::wait:
      return "wait";
    case Kind::exchange:
      return "exchange";
  }
  __builtin_unreachable();
}

double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e3;
}

/// One event per line, so that a long trace needs no memory.
class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) { out_ << "{\"traceEvents\":["; }
  void add(const Json& event) {
    out_ << (std::exchange(is_first_, false) ? "\n" : ",\n") << event.dump();
  }
  /// A process, or with `thread` ≥ 0 one of its tracks.
  void name(int process, int thread, const std::string& name) {
    Json event{{"ph", "M"}, {"pid", process}};
    event["name"] = thread < 0 ? "process_name" : "thread_name";
    if (thread >= 0) event["tid"] = thread;
    event["args"] = {{"name", name}};
    add(event);
  }
  void end(const TraceOrigin& origin) {
    Json other;
    if (!origin.method.empty()) other["method"] = origin.method;
    if (origin.steps > 0) other.update({{"steps", origin.steps}, {"warm_up", origin.warm_up}});
    out_ << "\n],\"displayTimeUnit\":\"ms\"";
    if (!other.empty()) out_ << ",\"otherData\":" << other.dump();
    out_ << "}\n";
  }

 private:
  std::ostream& out_;
  bool is_first_ = true;
};

Json interval(const std::string& name, int process, int thread, std::chrono::nanoseconds begin,
              std::chrono::nanoseconds end) {
  return {{"ph", "X"},
          {"name", name},
          {"pid", process},
          {"tid", thread},
          {"ts", microseconds(begin)},
          {"dur", microseconds(end - begin)}};
}

constexpr int kWork = 0;  // the track of a worker; bucket b has track 1 + b

void write_events(Writer& writer, std::span<const TimelineEvent> events, const HostShape& shape) {
  std::set<int> workers;
  for (const TimelineEvent& event : events) workers.insert(event.worker);
  for (int worker : workers) {
    writer.name(
        worker, -1,
        "worker " + std::to_string(worker) + ", host " + std::to_string(shape.host_of(worker)));
    writer.name(worker, kWork, "work");
  }
  std::set<std::pair<int, int>> named;
  for (const TimelineEvent& event : events) {
    const int track = event.kind == Kind::exchange ? 1 + event.bucket : kWork;
    if (track != kWork && named.insert({event.worker, track}).second) {
      writer.name(event.worker, track, "bucket " + std::to_string(event.bucket));
    }
    Json line = interval(name_of(event.kind), event.worker, track, event.begin, event.end);
    line["args"] = {{"step", event.step}};
    if (event.bucket >= 0) line["args"]["bucket"] = event.bucket;
    writer.add(line);
  }
}

void write_messages(Writer& writer, std::span<const TimelineMessage> messages,
                    const HostShape& shape) {
  const int links = shape.workers();
  if (!messages.empty()) writer.name(links, -1, "links");
  std::map<std::pair<int, int>, int> tracks;
  for (const TimelineMessage& message : messages) {
    const auto [at, is_new] =
        tracks.try_emplace({message.from, message.to}, static_cast<int>(tracks.size()));
    const std::string pair = std::to_string(message.from) + " to " + std::to_string(message.to);
    if (is_new) writer.name(links, at->second, pair);
    Json line = interval("bucket " + std::to_string(message.bucket), links, at->second,
                         message.begun, message.left);
    line["args"] = {{"step", message.step},
                    {"phase", message.phase},
                    {"bytes", message.bytes},
                    {"sent_us", microseconds(message.sent)},
                    {"arrived_us", microseconds(message.arrived)}};
    writer.add(line);
  }
}

/// Perfetto binds the ends of an arrow to what is shown on their tracks at their times.
void write_arrows(Writer& writer, std::span<const TimelineArrow> arrows) {
  for (std::size_t k = 0; k < arrows.size(); ++k) {
    const TimelineArrow& arrow = arrows[k];
    Json end{{"ph", "s"}, {"id", k}, {"name", "message"}, {"cat", "message"}};
    end["pid"] = arrow.from;
    end["tid"] = 1 + arrow.bucket;
    end["ts"] = microseconds(arrow.begin);
    writer.add(end);
    end["ph"] = "f";
    end["bp"] = "e";
    end["pid"] = arrow.to;
    end["ts"] = microseconds(arrow.end);
    writer.add(end);
  }
}

void write_counts(Writer& writer, int process, const char* name,
                  std::span<const TimelineCount> counts) {
  for (const TimelineCount& count : counts) {
    writer.add({{"ph", "C"},
                {"name", name},
                {"pid", process},
                {"ts", microseconds(count.at)},
                {"args", {{"value", count.value}}}});
  }
}

}  // namespace

void write_trace(std::ostream& out, std::span<const TimelineEvent> events,
                 std::span<const TimelineMessage> messages, const HostShape& shape,
                 const TraceOrigin& origin) {
  Writer writer(out);
  write_events(writer, events, shape);
  write_messages(writer, messages, shape);
  write_arrows(writer, arrows_of(events, messages));
  write_counts(writer, shape.workers(), "bytes under way", bytes_under_way(messages));
  write_counts(writer, shape.workers(), "Gbit/s between hosts",
               rate_between_hosts(messages, shape));
  writer.end(origin);
}

}  // namespace gossamer
