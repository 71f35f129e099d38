#include "gossamer/sim/exchanges.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {

TimelineMessage message_of(const sim::Transfer& transfer, SimTime arrived) {
  const sim::Parcel& parcel = transfer.parcel;
  return {.sent = transfer.sent,
          .begun = transfer.begun,
          .left = transfer.left,
          .arrived = arrived,
          .from = parcel.from,
          .to = parcel.to,
          .bytes = parcel.bytes,
          .step = parcel.exchange,
          .bucket = parcel.bucket,
          .phase = parcel.phase};
}

}  // namespace gossamer

namespace gossamer::sim {

Exchanges::Exchanges(const SimMethod& method, const Workload& workload, std::int64_t steps,
                     int largest_group, const HostShape& shape, Network& network, Events& events,
                     OnMessage on_message)
    : workload_(workload),
      stages_(method.pattern->stages()),
      payloads_(static_cast<int>(method.pattern->payloads.size())),
      count_(steps * stages_),
      posts_ahead_(method.pattern->launch == Launch::after_previous_update),
      lends_(sends_parameters_ahead(*method.pattern)),
      network_(network),
      events_(events),
      book_(method, shape, workload, largest_group, network),
      crowds_(network, events),
      on_message_(std::move(on_message)),
      lanes_(static_cast<std::size_t>(shape.workers()) * workload.buckets.size() *
             method.pattern->payloads.size()),
      lost_(static_cast<std::size_t>(shape.workers()), 0) {}

bool Exchanges::has_ended(int worker, int bucket) const {
  const std::size_t first = index(worker, bucket * payloads_);
  return std::all_of(lanes_.begin() + static_cast<std::ptrdiff_t>(first),
                     lanes_.begin() + static_cast<std::ptrdiff_t>(first) + payloads_,
                     [](const Lane& lane) { return lane.has_ended; });
}

bool Exchanges::takes_part(int worker, int bucket, std::int64_t exchange) {
  const ScriptBook::Scripts scripts = book_.find(bucket, exchange);
  return scripts->crowd(worker) != nullptr || scripts->of(worker).count() > 0;
}

HostWork Exchanges::host_work(int worker, int bucket, std::int64_t exchange) {
  HostWork work = book_.find(bucket, exchange)->work[static_cast<std::size_t>(worker)];
  work.before *= payloads_;
  work.after *= payloads_;
  return work;
}

SimTime Exchanges::launched_at(int worker, int bucket) const {
  return lanes_[index(worker, bucket * payloads_)].launched;
}

void Exchanges::launch(SimTime now, int worker, int bucket, std::int64_t exchange) {
  for (int k = 0; k < payloads_; ++k) {
    launch_track(now, worker, bucket * payloads_ + k, exchange);
  }
}

void Exchanges::launch_track(SimTime now, int worker, int track, std::int64_t exchange) {
  Lane& mine = lane(worker, track);
  GOSSAMER_ASSERT(mine.has_ended && exchange == mine.exchange + 1);
  give_back(now, mine, track);
  std::swap(mine.borrowed, mine.borrowed_ahead);
  const bool was_ahead = mine.ahead == exchange;
  mine.scripts =
      was_ahead ? std::move(mine.ahead_scripts) : book_.find(track / payloads_, exchange);
  mine.exchange = exchange;
  mine.phase = 0;
  mine.launched = now;
  mine.ahead = -1;
  mine.has_ended = false;
  const Script& script = mine.scripts->of(worker);
  const Crowd* crowd = mine.scripts->crowd(worker);
  if (crowd) crowds_.join(now, *crowd, worker, track, exchange);
  if (script.count() > 0) {
    if (was_ahead) std::swap(mine.got, mine.got_ahead);
    if (!was_ahead) mine.got.assign(script.receives(0).size(), 0);
    enter_phase(now, worker, track);
  }
  go_on(now, worker, track);
  post_ahead(now, worker, track);
}

/// Posts the receives and sends of the phase. What has come ahead is in `got`.
void Exchanges::enter_phase(SimTime now, int worker, int track) {
  Lane& mine = lane(worker, track);
  const Script& script = mine.scripts->of(worker);
  mine.missing = 0;
  for (char got : mine.got) mine.missing += got ? 0 : 1;
  release_held(now, mine);
  const auto sends = script.sends(mine.phase);
  for (const ScriptSend& send : sends) {
    const bool is_lent = lends_ && send.is_payload;
    ++(is_lent ? mine.lent[static_cast<std::size_t>(mine.exchange % 2)] : mine.sends_open);
    const TransferId id = network_.make(now, {.from = worker,
                                              .to = send.to,
                                              .edge = send.edge,
                                              .bucket = track,
                                              .exchange = mine.exchange,
                                              .bytes = send.bytes,
                                              .phase = mine.phase,
                                              .receive_phase = send.receive_phase,
                                              .receive = send.receive,
                                              .is_lent = is_lent});
    if (is_lost(send.to)) continue;  // nobody will ever take it
    Lane& theirs = lane(send.to, track);
    if (has_posted(theirs, network_.at(id).parcel)) {
      network_.depart(now, id);
    } else {
      theirs.held.push_back(id);
    }
  }
}

/// Through all phases whose receives are in.
void Exchanges::go_on(SimTime now, int worker, int track) {
  Lane& mine = lane(worker, track);
  const Script& script = mine.scripts->of(worker);
  const Crowd* crowd = mine.scripts->crowd(worker);
  if (crowd && !crowds_.has_ended(*crowd, track, mine.exchange)) return;
  while (mine.phase < script.count() && mine.missing == 0) {
    if (++mine.phase == script.count()) break;
    mine.got.assign(script.receives(mine.phase).size(), 0);
    enter_phase(now, worker, track);
  }
  const bool is_back = mine.lent[static_cast<std::size_t>((mine.exchange + 1) % 2)] == 0;
  mine.has_ended = mine.phase == script.count() && mine.sends_open == 0 && is_back;
}

Exchanges::Ended Exchanges::go_on_to_end(SimTime now, int worker, int track) {
  const Lane& mine = lane(worker, track);
  if (mine.has_ended || is_lost(worker)) return {};
  go_on(now, worker, track);
  const int bucket = track / payloads_;
  return has_ended(worker, bucket) ? Ended{worker, bucket} : Ended{};
}

/// What the exchange that is over has borrowed.
void Exchanges::give_back(SimTime now, Lane& mine, int track) {
  for (int owner : mine.borrowed) {
    --lane(owner, track).lent[static_cast<std::size_t>(mine.exchange % 2)];
    events_.push(
        now,
        {.kind = Event::Kind::returned, .who = owner, .detail = static_cast<std::uint32_t>(track)});
  }
  mine.borrowed.clear();
}

void Exchanges::post_ahead(SimTime now, int worker, int track) {
  Lane& mine = lane(worker, track);
  if (!posts_ahead_ || mine.exchange + 1 >= count_) return;
  mine.ahead = mine.exchange + 1;
  mine.ahead_scripts = book_.find(track / payloads_, mine.ahead);
  const Script& script = mine.ahead_scripts->of(worker);
  mine.got_ahead.assign(script.count() > 0 ? script.receives(0).size() : 0, 0);
  release_held(now, mine);
}

bool Exchanges::has_posted(const Lane& lane, const Parcel& parcel) {
  if (parcel.exchange == lane.ahead) return parcel.receive_phase == 0;
  return parcel.exchange == lane.exchange && parcel.receive_phase <= lane.phase;
}

void Exchanges::release_held(SimTime now, Lane& mine) {
  std::erase_if(mine.held, [&](TransferId id) {
    const bool posted = has_posted(mine, network_.at(id).parcel);
    if (posted) network_.depart(now, id);
    return posted;
  });
}

Exchanges::Ended Exchanges::left(SimTime now, TransferId id) {
  const Parcel parcel = network_.at(id).parcel;
  if (parcel.sum) return {};  // of a crowd
  Lane& sender = lane(parcel.from, parcel.bucket);
  if (parcel.is_lent && network_.is_inside(parcel)) return {};  // until its receiver is done
  --(parcel.is_lent ? sender.lent[static_cast<std::size_t>(parcel.exchange % 2)]
                    : sender.sends_open);
  return go_on_to_end(now, parcel.from, parcel.bucket);
}

Exchanges::Ended Exchanges::arrived(SimTime now, TransferId id) {
  const Transfer& transfer = network_.at(id);
  const Parcel parcel = transfer.parcel;
  if (parcel.sum) {
    network_.remove(id);
    const ScriptBook::Scripts& scripts = lane(parcel.from, parcel.bucket).scripts;
    crowds_.arrived(now, *scripts->crowd(parcel.from), parcel);
    return {};
  }
  if (on_message_) {
    TimelineMessage message = message_of(transfer, now);
    message.step /= stages_;
    message.bucket /= payloads_;
    on_message_(message);
  }
  network_.remove(id);
  return message_arrived(now, parcel);
}

Exchanges::Ended Exchanges::message_arrived(SimTime now, const Parcel& parcel) {
  Lane& receiver = lane(parcel.to, parcel.bucket);
  if (is_lost(parcel.to)) return {};
  const bool is_ahead = parcel.exchange == receiver.ahead;
  if (parcel.is_lent && network_.is_inside(parcel)) {
    (is_ahead ? receiver.borrowed_ahead : receiver.borrowed).push_back(parcel.from);
  }
  if (is_ahead) {
    receiver.got_ahead[static_cast<std::size_t>(parcel.receive)] = 1;
    return {};
  }
  GOSSAMER_ASSERT(parcel.exchange == receiver.exchange && parcel.receive_phase == receiver.phase);
  receiver.got[static_cast<std::size_t>(parcel.receive)] = 1;
  --receiver.missing;
  return go_on_to_end(now, parcel.to, parcel.bucket);
}

void Exchanges::lose(SimTime now, int worker) {
  lost_[static_cast<std::size_t>(worker)] = 1;
  network_.lose(worker);
  crowds_.lose(worker);
  for (int track = 0; track < tracks(); ++track) {
    Lane& lost = lane(worker, track);
    lost.held.clear();
    give_back(now, lost, track);
  }
  for (Lane& each : lanes_) {
    std::erase_if(each.held, [&](TransferId id) { return network_.at(id).parcel.from == worker; });
  }
}

void Exchanges::add_open_waits(int worker, int track, std::vector<WaitsFor>& waits) const {
  const Lane& open = lanes_[index(worker, track)];
  if (open.has_ended) return;
  const auto add = [&](int peer) {
    waits.push_back({worker, peer, open.exchange / stages_, track / payloads_, true});
  };
  if (const Crowd* crowd = open.scripts->crowd(worker)) {
    for (int member : crowds_.missing(*crowd, track, open.exchange)) add(member);
    return;
  }
  if (open.missing == 0) return;
  const auto receives = open.scripts->of(worker).receives(open.phase);
  for (std::size_t k = 0; k < receives.size(); ++k) {
    if (!open.got[k]) add(receives[k].from);
  }
}

std::vector<WaitsFor> Exchanges::open_waits() const {
  std::vector<WaitsFor> waits;
  for (int worker = 0; worker < static_cast<int>(lost_.size()); ++worker) {
    for (int track = 0; track < tracks() && !is_lost(worker); ++track) {
      add_open_waits(worker, track, waits);
    }
  }
  // A transfer that has left is not waited for by its sender.
  for (const Transfer& transfer : network_.transfers()) {
    const Parcel& parcel = transfer.parcel;
    if (!transfer.exists || is_lost(parcel.from) || parcel.sum) continue;
    waits.push_back(
        {parcel.from, parcel.to, parcel.exchange / stages_, parcel.bucket / payloads_, false});
  }
  return waits;
}

}  // namespace gossamer::sim
