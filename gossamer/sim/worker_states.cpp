#include "gossamer/sim/worker_states.h"

#include <algorithm>
#include <utility>

namespace gossamer::sim {
namespace {

Exchanges::OnMessage recorder(bool wanted, std::vector<TimelineMessage>& messages) {
  if (!wanted) return nullptr;
  return [&messages](const TimelineMessage& message) { messages.push_back(message); };
}

DeviceQueues<SimTime> device_queues(const ClusterSpec& cluster, const Workload& workload,
                                    const SimMethod& method) {
  const DeviceCopies kind = device_copies(*method.pattern, method.late);
  std::vector<SimTime> copies;
  for (const double seconds : device_copy_s(cluster, workload, kind)) {
    copies.push_back(nearest_ns(seconds));
  }
  return {std::move(copies), kind, static_cast<std::size_t>(cluster.shape().workers())};
}

/// DDP leaves it to its own library; what late = skip costs the host is not in the model.
bool has_host_work(const SimMethod& method) {
  return !method.pattern->is_ddp && method.late == Late::wait;
}

}  // namespace

WorkerStates::WorkerStates(const ClusterSpec& cluster, const Workload& workload,
                           const SimMethod& method, const SimOptions& options, SimResult& result)
    : workload_(workload),
      method_(method),
      options_(options),
      result_(result),
      shape_(cluster.shape()),
      stages_(method.pattern->stages()),
      waits_(method.late == Late::wait),
      network_(cluster, options.framing, events_),
      exchanges_(method, workload, options.steps, options.largest_group, shape_, network_, events_,
                 recorder(options.record_messages, result.messages)),
      late_(method, workload, shape_, network_, recorder(options.record_messages, result.messages)),
      devices_(device_queues(cluster, workload, method)),
      host_rates_(has_host_work(method) ? host_rates(cluster) : std::vector<double>()),
      workers_(static_cast<std::size_t>(shape_.workers())) {
  result_.steps.resize(workers_.size());
  for (int w = 0; w < shape_.workers(); ++w) {
    result_.steps[static_cast<std::size_t>(w)].reserve(static_cast<std::size_t>(options.steps));
  }
  for (std::size_t b = 0; b < workload.buckets.size(); ++b) {
    update_times_.push_back(update_time(workload, b));
  }
  for (Worker& each : workers_) {
    each.leaving.resize(workload.buckets.size());
    each.work.resize(workload.buckets.size());
    each.is_away.resize(workload.buckets.size());
  }
}

void WorkerStates::start() {
  for (int w = 0; w < shape_.workers() && sends_ahead(); ++w) launch_all(SimTime(0), w);
  for (int w = 0; w < shape_.workers(); ++w) begin_step(SimTime(0), w);
}

/// The step's first exchanges.
void WorkerStates::launch_all(SimTime now, int w) {
  if (worker(w).step == options_.steps) return;
  for (int b = 0; b < buckets(); ++b) launch(now, w, b, stages_ * worker(w).step);
}

void WorkerStates::begin_step(SimTime now, int w) {
  Worker& me = worker(w);
  if (me.step == options_.steps) {
    me.doing = Doing::finished;
    return;
  }
  me.begin = now;
  me.waited = SimTime(0);
  me.moments = moments_of(workload_, nearest_ns(compute_s(workload_.compute, w, me.step)));
  me.next = stops_at_buckets() ? 0 : buckets() - 1;
  me.target = kAny;
  me.reduced = 0;
  me.open.assign(workload_.buckets.size(), static_cast<char>(stages_));
  me.doing = Doing::computing;
  me.since = now;
  const SimTime end = me.moments.backward[static_cast<std::size_t>(me.next)];
  events_.push(now + end, {.kind = Event::Kind::computed, .who = w});
}

/// The backward of the next bucket.
void WorkerStates::compute(SimTime now, int w) {
  Worker& me = worker(w);
  const auto next = static_cast<std::size_t>(me.next);
  me.doing = Doing::computing;
  me.since = now;
  const SimTime takes = me.moments.backward[next] - me.moments.backward[next - 1];
  events_.push(now + takes, {.kind = Event::Kind::computed, .who = w});
}

void WorkerStates::record_compute(SimTime now, int w) {
  using Kind = TimelineEvent::Kind;
  const Worker& me = worker(w);
  const bool is_whole = !stops_at_buckets();
  const bool has_forward = is_whole || me.next == 0;
  const SimTime middle = has_forward ? me.since + me.moments.forward : me.since;
  if (has_forward) record(Kind::forward, w, -1, me.since, middle);
  record(Kind::backward, w, is_whole ? -1 : me.next, middle, now);
}

void WorkerStates::computed(SimTime now, int w) {
  record_compute(now, w);
  Worker& me = worker(w);
  const int bucket = me.next++;
  if (sends_ahead()) {
    if (stops_at_buckets()) me.target = bucket;
    return take(now, w);
  }
  if (!pattern().is_ddp) return begin_bucket(now, w, bucket);
  reduce_next(now, w);
  if (me.next < buckets()) return compute(now, w);
  take(now, w);
}

/// The local update where there is one, then its payloads leave.
void WorkerStates::begin_bucket(SimTime now, int w, int bucket) {
  Worker& me = worker(w);
  me.beginning = bucket;
  me.since = now;
  const bool steps_first = pattern().launch == Launch::after_local_update;
  const SimTime takes = steps_first ? update_takes(w, bucket) : SimTime(0);
  if (takes.count() == 0) return begun(now, w);
  me.doing = Doing::updating;
  events_.push(
      now + takes,
      {.kind = Event::Kind::updated, .who = w, .detail = static_cast<std::uint32_t>(bucket)});
}

void WorkerStates::begun(SimTime now, int w) {
  Worker& me = worker(w);
  const int bucket = std::exchange(me.beginning, kAny);
  if (now > me.since) record(TimelineEvent::Kind::update, w, bucket, me.since, now);
  launch(now, w, bucket, stages_ * me.step);
  if (stops_at_buckets() && me.next < buckets()) return compute(now, w);
  if (!stops_at_buckets() && bucket > 0) return begin_bucket(now, w, bucket - 1);
  take(now, w);
}

/// The buckets that are ready, one after the other.
void WorkerStates::reduce_next(SimTime now, int w) {
  Worker& me = worker(w);
  while (me.reduced < me.next && (me.reduced == 0 || exchanges_.has_ended(w, me.reduced - 1))) {
    launch(now, w, me.reduced++, me.step);
  }
}

void WorkerStates::launch(SimTime now, int w, int bucket, std::int64_t exchange) {
  if (!waits_) return late_.send(now, w, bucket, exchange);
  if (!is_beside() || !exchanges_.takes_part(w, bucket, exchange)) {
    exchanges_.launch(now, w, bucket, exchange);
    if (exchanges_.has_ended(w, bucket)) record_exchange(now, w, bucket);
    return;
  }
  const auto b = static_cast<std::size_t>(bucket);
  worker(w).leaving[b] = exchange;
  worker(w).is_away[b] = 1;
  SimTime over = devices_.out(static_cast<std::size_t>(w), index(w, bucket), now);
  if (!host_rates_.empty()) {
    worker(w).work[b] = exchanges_.host_work(w, bucket, exchange);
    over = host_works(over, w, worker(w).work[b].before);
  }
  events_.push(
      over,
      {.kind = Event::Kind::copied_out, .who = w, .detail = static_cast<std::uint32_t>(bucket)});
}

/// When the thread of the exchanges has done it.
SimTime WorkerStates::host_works(SimTime ready, int w, double work) {
  SimTime& is_free = worker(w).thread_free;
  const SimTime takes = nearest_ns(work / host_rates_[static_cast<std::size_t>(w)]);
  return is_free = std::max(is_free, ready) + takes;
}

void WorkerStates::copied_out(SimTime now, int w, int bucket) {
  const std::int64_t exchange = worker(w).leaving[static_cast<std::size_t>(bucket)];
  exchanges_.launch(now, w, bucket, exchange);
  if (exchanges_.has_ended(w, bucket)) exchange_ended(now, {w, bucket});
}

bool WorkerStates::is_ready(int w, int bucket) const {
  if (!waits_) return true;
  const Worker& me = workers_[static_cast<std::size_t>(w)];
  return me.is_away[static_cast<std::size_t>(bucket)] == 0 && exchanges_.has_ended(w, bucket);
}

SimTime WorkerStates::update_takes(int w, int bucket) const {
  return update_times_[static_cast<std::size_t>(bucket)] + devices_.within_update(index(w, bucket));
}

/// The bucket to update next; kAny if none is ready.
int WorkerStates::choose(int w) const {
  const Worker& me = workers_[static_cast<std::size_t>(w)];
  if (me.target != kAny) return is_ready(w, me.target) ? me.target : kAny;
  const bool at_once = pattern().is_ddp;
  int chosen = kAny;
  for (int b = buckets() - 1; b >= 0; --b) {
    if (!me.open[static_cast<std::size_t>(b)]) continue;
    const bool ready = is_ready(w, b);
    if (at_once && !ready) return kAny;
    if (ready && chosen == kAny) chosen = b;
  }
  return chosen;
}

void WorkerStates::take(SimTime now, int w) {
  Worker& me = worker(w);
  const int bucket = choose(w);
  me.since = now;
  if (bucket == kAny) {
    me.doing = Doing::waiting;
    return;
  }
  if (me.open[static_cast<std::size_t>(bucket)] > 1) return mixed(now, w, bucket);
  if (!waits_) result_.skipped += late_.take(w, bucket, me.step);
  const bool has_stepped = pattern().launch == Launch::after_local_update;
  const SimTime takes = has_stepped ? SimTime(0) : update_takes(w, bucket);
  if (takes.count() == 0) return updated(now, w, bucket);
  me.doing = Doing::updating;
  events_.push(
      now + takes,
      {.kind = Event::Kind::updated, .who = w, .detail = static_cast<std::uint32_t>(bucket)});
}

/// Its parameters; its gradient leaves. What that takes is part of the update.
void WorkerStates::mixed(SimTime now, int w, int bucket) {
  Worker& me = worker(w);
  const int stage = stages_ - --me.open[static_cast<std::size_t>(bucket)];
  launch(now, w, bucket, stages_ * me.step + stage);
  go_on(now, w);
}

void WorkerStates::updated(SimTime now, int w, int bucket) {
  Worker& me = worker(w);
  record(TimelineEvent::Kind::update, w, bucket, me.since, now);
  me.open[static_cast<std::size_t>(bucket)] = 0;
  const bool sends_at_once = sends_ahead() && stages_ == 1;
  if (sends_at_once && me.step + 1 < options_.steps) launch(now, w, bucket, me.step + 1);
  go_on(now, w);
}

void WorkerStates::go_on(SimTime now, int w) {
  Worker& me = worker(w);
  if (std::exchange(me.target, kAny) != kAny && me.next < buckets()) return compute(now, w);
  if (std::ranges::any_of(me.open, [](char stages) { return stages > 0; })) return take(now, w);
  result_.steps[static_cast<std::size_t>(w)].push_back({me.begin, now, me.waited});
  ++me.step;
  if (sends_ahead() && stages_ > 1) launch_all(now, w);
  begin_step(now, w);
}

void WorkerStates::exchange_ended(SimTime now, const Exchanges::Ended& ended) {
  const int w = ended.worker;
  if (w < 0) return;
  record_exchange(now, w, ended.bucket);
  if (pattern().is_ddp) reduce_next(now, w);
  const auto b = static_cast<std::size_t>(ended.bucket);
  if (worker(w).is_away[b] == 0) return came(now, w);
  const SimTime here = host_rates_.empty() ? now : host_works(now, w, worker(w).work[b].after);
  const SimTime over = devices_.in(static_cast<std::size_t>(w), index(w, ended.bucket), here);
  events_.push(over, {.kind = Event::Kind::copied_in,
                      .who = w,
                      .detail = static_cast<std::uint32_t>(ended.bucket)});
}

/// Goes on if that was what it waited for.
void WorkerStates::came(SimTime now, int w) {
  Worker& me = worker(w);
  if (me.doing != Doing::waiting || choose(w) == kAny) return;
  record(TimelineEvent::Kind::wait, w, me.target, me.since, now);
  me.waited += now - me.since;
  take(now, w);
}

void WorkerStates::lose(SimTime now, int w) {
  worker(w).doing = Doing::lost;
  exchanges_.lose(now, w);
}

void WorkerStates::handle(SimTime now, const Event& event) {
  switch (event.kind) {
    case Event::Kind::computed:
      if (worker(event.who).doing != Doing::lost) computed(now, event.who);
      return;
    case Event::Kind::updated:
      if (worker(event.who).doing == Doing::lost) return;
      if (worker(event.who).beginning != kAny) return begun(now, event.who);
      return updated(now, event.who, static_cast<int>(event.detail));
    case Event::Kind::left:
      if (network_.has_left(now, event.who, event.detail) && waits_) {
        exchange_ended(now, exchanges_.left(now, event.who));
      }
      return;
    case Event::Kind::arrived:
      if (!waits_) return late_.arrived(now, event.who);
      return exchange_ended(now, exchanges_.arrived(now, event.who));
    case Event::Kind::returned:
      return exchange_ended(now,
                            exchanges_.returned(now, event.who, static_cast<int>(event.detail)));
    case Event::Kind::copied_out:
      if (worker(event.who).doing == Doing::lost) return;
      return copied_out(now, event.who, static_cast<int>(event.detail));
    case Event::Kind::copied_in:
      if (worker(event.who).doing == Doing::lost) return;
      worker(event.who).is_away[event.detail] = 0;
      return came(now, event.who);
    case Event::Kind::link_changed: {
      const LinkChange& change = options_.link_changes[static_cast<std::size_t>(event.who)];
      return network_.set_factor(change.host, change.factor);
    }
    case Event::Kind::lost:
      return lose(now, event.who);
  }
}

void WorkerStates::finish() {
  result_.traffic = network_.traffic();
  if (waits_) result_.waits_for = exchanges_.open_waits();
}

void WorkerStates::record(TimelineEvent::Kind kind, int w, int bucket, SimTime begin, SimTime end) {
  if (!options_.record_timeline) return;
  result_.timeline.push_back({kind, w, worker(w).step, bucket, begin, end});
}

void WorkerStates::record_exchange(SimTime now, int w, int bucket) {
  if (!options_.record_timeline) return;
  result_.timeline.push_back({TimelineEvent::Kind::exchange, w, exchanges_.step(w, bucket), bucket,
                              exchanges_.launched_at(w, bucket), now});
}

}  // namespace gossamer::sim
