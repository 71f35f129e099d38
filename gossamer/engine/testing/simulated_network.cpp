#include "gossamer/engine/testing/simulated_network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer::simulation {
namespace {

constexpr std::chrono::seconds kBeat{1};
constexpr std::chrono::seconds kOfSuspicion{3};  // as the net transport's
const std::string kRestarted = "the peer restarted";

}  // namespace

Network::Network(Scheduler& scheduler, int workers, const NetworkOptions& options)
    : scheduler_(scheduler),
      options_(options),
      processes_(at(workers)),
      last_(at(workers), std::vector<Time>(at(workers))) {}

/// Most are near the median; some take a hundred times as long.
Duration Network::delay() {
  Rng& rng = scheduler_.rng();
  const double of_median = rng.below(50) == 0 ? 100 * rng.uniform() : 0.3 + 2 * rng.uniform();
  return std::chrono::duration_cast<Duration>(options_.latency * of_median);
}

std::shared_ptr<Process> Network::begin(int rank, std::uint64_t generation) {
  const int workers = static_cast<int>(processes_.size());
  const auto process = std::make_shared<Process>(rank, generation, workers, options_);
  processes_[at(rank)] = process;
  process->begun = scheduler_.now();
  if (generation > 0) process->newcomers.come_back(rank);
  for (int peer = 0; peer < workers; ++peer) {
    const auto& other = processes_[at(peer)];
    View& seen = view(*process, peer);
    seen.last_seen = scheduler_.now();
    if (peer == rank) continue;
    if (!other && options_.late.contains(peer)) {
      seen.sends_ended = seen.receives_ended = Failure("it has not come yet");
    }
    if (!other) continue;  // they begin together
    seen.generation = other->generation;
    if (generation == 0) continue;
    seen.is_used = true;
    const bool are_strangers =
        other->generation > 0 && scheduler_.now() < other->begun + options_.strangers_for;
    if (are_strangers) --seen.generation;
    if (other->is_over || are_strangers) {
      seen.sends_ended = seen.receives_ended = Failure("nobody listens there");
    } else {
      say(*process, {.kind = Message::Kind::hello, .to = peer});
    }
  }
  scheduler_.do_at(scheduler_.now() + seconds(scheduler_.rng().uniform()),
                   [this, process] { beat(process); });
  return process;
}

/// In the order of what it has said before, but with another delay.
void Network::say(Process& process, Message message) {
  message.from = process.rank;
  message.from_generation = process.generation;
  message.to_generation = view(process, message.to).generation;
  travel(std::move(message), delay());
}

void Network::travel(Message message, Duration takes) {
  if (are_parted(message.from, message.to)) {
    held_up_.push_back(std::move(message));
    return;
  }
  Time& last = last_[at(message.from)][at(message.to)];
  last = std::max(last, scheduler_.now() + takes);
  scheduler_.do_at(last, [this, message = std::move(message)] { arrive(message); });
}

void Network::arrive(Message message) {
  const auto& process = processes_[at(message.to)];
  if (!process || process->is_over || process->generation != message.to_generation) return;
  if (are_parted(message.from, message.to)) {
    held_up_.push_back(std::move(message));
  } else if (process->is_frozen) {
    process->stalled.push_back(std::move(message));
  } else {
    hear(*process, message);
  }
}

void Network::hear(Process& process, Message& message) {
  if (message.kind == Message::Kind::hello) return greet(process, message);
  View& seen = view(process, message.from);
  if (seen.generation != message.from_generation) return;
  seen.last_seen = scheduler_.now();
  switch (message.kind) {
    case Message::Kind::hello:
      return;
    case Message::Kind::offer: {
      if (seen.receives_ended) return;
      const auto receive = seen.receives.find(message.tag);
      if (receive != seen.receives.end()) return take(process, receive->second, message);
      seen.offers[message.tag] = std::move(message);
      return;
    }
    case Message::Kind::withdrawn: {
      const auto offer = seen.offers.find(message.tag);
      if (offer != seen.offers.end() && offer->second.request == message.request) {
        seen.offers.erase(offer);
      }
      return;
    }
    case Message::Kind::done:
    case Message::Kind::refused: {
      const auto send = process.posts.find(message.request);
      if (send == process.posts.end() || send->second.state != Status::State::pending) return;
      if (message.failure) return fail(process, message.request, *message.failure);
      send->second.state = Status::State::done;
      seen.sends.erase(message.tag);
      return scheduler_.wake(process);
    }
    case Message::Kind::ending: {
      Failure failure = *message.failure;
      const bool was_suspected = scheduler_.now() < seen.suspected_at + kOfSuspicion;
      if (failure.fault == Fault::lost && was_suspected) failure.fault = Fault::silent;
      return end(process, message.from, message.ends_sends, message.ends_receives, failure);
    }
  }
}

/// A later generation takes the place of the former one.
void Network::greet(Process& process, const Message& message) {
  View& seen = view(process, message.from);
  if (message.from_generation <= seen.generation) return;
  end(process, message.from, true, true, {kRestarted});
  seen = {.generation = message.from_generation, .is_used = true, .last_seen = scheduler_.now()};
  process.newcomers.come({message.from, message.from_generation});
  scheduler_.wake(process);
}

void Network::take(Process& process, Request request, Message& offer) {
  Post& receive = process.posts.at(request);
  Message answer{
      .kind = Message::Kind::done, .to = receive.peer, .request = offer.request, .tag = offer.tag};
  if (offer.payload.size() != receive.landing.size()) {
    answer.kind = Message::Kind::refused;
    answer.failure = size_mismatch(offer.payload.size(), receive.landing.size());
    fail(process, request, *answer.failure);
  } else {
    if (!offer.payload.empty()) {
      std::memcpy(receive.landing.data(), offer.payload.data(), offer.payload.size());
    }
    receive.state = Status::State::done;
    receive.arrived = scheduler_.now();
    view(process, receive.peer).receives.erase(receive.tag);
    scheduler_.wake(process);
  }
  say(process, std::move(answer));
}

void Network::fail(Process& process, Request request, const Failure& failure) {
  Post& post = process.posts.at(request);
  View& seen = view(process, post.peer);
  (post.sending ? seen.sends : seen.receives).erase(post.tag);
  post.state = Status::State::failed;
  post.error = failure_of(post, failure, scheduler_.now());
  scheduler_.wake(process);
}

void Network::end(Process& process, int peer, bool sends, bool receives, const Failure& failure) {
  View& seen = view(process, peer);
  const auto end_all = [&](std::optional<Failure>& ended, std::map<Tag, Request>& pending) {
    if (!ended) ended = failure;
    for (const auto& [tag, request] : std::map(pending)) fail(process, request, *ended);
  };
  if (sends) end_all(seen.sends_ended, seen.sends);
  if (!receives) return;
  end_all(seen.receives_ended, seen.receives);
  seen.offers.clear();
}

void Network::die(Process& process) {
  process.is_over = true;
  Rng& rng = scheduler_.rng();
  for (int rank = 0; rank < std::ssize(processes_); ++rank) {
    if (rank == process.rank) continue;
    const auto in = [&] {
      return scheduler_.now() + (rng.below(4) == 0 ? seconds(0.3 * rng.uniform()) : delay());
    };
    const Time sends = in();
    const Time receives = rng.below(2) == 0 ? sends : in();
    const auto notice = [this, rank, of = process.rank, generation = process.generation](
                            bool of_sends, bool of_receives) {
      notice_end(rank, of, generation, of_sends, of_receives);
    };
    scheduler_.do_at(sends, [notice] { notice(true, false); });
    scheduler_.do_at(receives, [notice] { notice(false, true); });
  }
}

/// Its system says so, once it can be reached.
void Network::notice_end(int rank, int of, std::uint64_t of_generation, bool sends, bool receives) {
  const auto& process = processes_[at(rank)];
  if (!process || process->is_over) return;
  Message message{.kind = Message::Kind::ending,
                  .from = of,
                  .to = rank,
                  .from_generation = of_generation,
                  .to_generation = process->generation,
                  .failure = Failure("the peer's process has ended"),
                  .ends_sends = sends,
                  .ends_receives = receives};
  arrive(std::move(message));
}

void Network::leave(Process& process) {
  if (process.is_over) return;
  for (int rank = 0; rank < std::ssize(processes_); ++rank) {
    if (rank == process.rank) continue;
    say(process, {.kind = Message::Kind::ending,
                  .to = rank,
                  .failure = Failure("the peer left"),
                  .ends_sends = true,
                  .ends_receives = true});
  }
  process.is_over = true;
}

void Network::freeze(Process& process) { process.is_frozen = true; }

void Network::thaw(Process& process) {
  process.is_frozen = false;
  process.stood_still = true;
  for (Message& message : std::exchange(process.stalled, {})) {
    if (!process.is_over) hear(process, message);
  }
  scheduler_.wake(process);
}

void Network::part(std::set<int> ranks) { parted_ = std::move(ranks); }

/// What was held up comes again when each connection next tries.
void Network::mend() {
  parted_.clear();
  std::map<std::pair<int, int>, Duration> waits;
  for (Message& message : std::exchange(held_up_, {})) {
    auto [wait, is_new] = waits.try_emplace({message.from, message.to});
    if (is_new) wait->second = seconds(scheduler_.rng().uniform());
    travel(std::move(message), wait->second);
  }
}

Request Network::post(Process& process, Post post) {
  View& seen = view(process, post.peer);
  const Request request = ++process.last_request;
  auto& pending = post.sending ? seen.sends : seen.receives;
  if (pending.contains(post.tag)) fail_duplicate_tag(post.sending, post.peer, post.tag);
  post.posted = scheduler_.now();
  post.rank = process.rank;
  const bool is_held_back =
      process.newcomers.is_held_back(post.peer) && post.tag.stream != kNewcomers;
  const auto& ended = post.sending ? seen.sends_ended : seen.receives_ended;
  const Post& posted = process.posts.emplace(request, std::move(post)).first->second;
  if (is_held_back || ended) {
    fail(process, request, is_held_back ? Failure(kRestarted) : *ended);
    return request;
  }
  seen.is_used = true;
  pending[posted.tag] = request;
  if (posted.sending) {
    say(process, {.kind = Message::Kind::offer,
                  .to = posted.peer,
                  .request = request,
                  .tag = posted.tag,
                  .payload = posted.payload});
    return request;
  }
  const auto offer = seen.offers.find(posted.tag);
  if (offer != seen.offers.end()) {
    Message taken = std::move(offer->second);
    seen.offers.erase(offer);
    take(process, request, taken);
  }
  return request;
}

Status Network::poll(Process& process, Request request) {
  const Post& post = process.posts.at(request);
  if (post.state == Status::State::pending && post.deadline <= scheduler_.now()) {
    fail(process, request, {"deadline passed; the peer is late", Fault::late});
  }
  return {.state = post.state,
          .payload = post.sending || post.state != Status::State::done
                         ? std::span<const std::byte>()
                         : std::span<const std::byte>(post.landing),
          .error = post.error,
          .arrived = post.arrived};
}

void Network::release(Process& process, Request request) {
  const auto found = process.posts.find(request);
  if (found == process.posts.end()) fail_no_request(request);
  const Post& post = found->second;
  if (post.state == Status::State::pending) {
    View& seen = view(process, post.peer);
    (post.sending ? seen.sends : seen.receives).erase(post.tag);
    if (post.sending) {
      say(process,
          {.kind = Message::Kind::withdrawn, .to = post.peer, .request = request, .tag = post.tag});
    }
  }
  process.posts.erase(found);
}

void Network::close(Process& process, int peer, const char* here, const char* told) {
  end(process, peer, true, true, {here});
  say(process, {.kind = Message::Kind::ending,
                .to = peer,
                .failure = said_by_peer(told),
                .ends_sends = true,
                .ends_receives = true});
}

bool Network::expire_due(Process& process) {
  std::vector<Request> due;
  for (const auto& [request, post] : process.posts) {
    const bool is_due = post.state == Status::State::pending && post.deadline <= scheduler_.now();
    if (is_due) due.push_back(request);
  }
  for (const Request request : due) {
    fail(process, request, {"deadline passed; the peer is late", Fault::late});
  }
  return !due.empty();
}

Deadline Network::next_deadline(const Process& process) const {
  Deadline next = Deadline::max();
  for (const auto& [request, post] : process.posts) {
    if (post.state == Status::State::pending) next = std::min(next, post.deadline);
  }
  return next;
}

/// Once a second it hears that the others are alive, and gives those up that are not heard.
void Network::beat(const std::shared_ptr<Process>& process) {
  if (process->is_over) return;
  const Time now = scheduler_.now();
  scheduler_.do_at(now + kBeat, [this, process] { beat(process); });
  if (process->is_frozen) return;
  const bool stood_still = std::exchange(process->stood_still, false);
  std::vector<LastHeard> heard(process->views.size());
  for (int peer = 0; peer < std::ssize(processes_); ++peer) {
    const auto& other = processes_[at(peer)];
    if (peer == process->rank || !other) continue;
    View& seen = view(*process, peer);
    const bool says = !other->is_over && !other->is_frozen && !are_parted(process->rank, peer) &&
                      other->generation == seen.generation && !seen.receives_ended;
    if (says) {
      const Time said = now - seconds(scheduler_.rng().uniform());
      seen.last_seen = std::max(seen.last_seen, said);
    }
    if (stood_still) seen.last_seen = now;
    const bool has_ended = seen.sends_ended && seen.receives_ended;
    const bool is_given_up =
        seen.was_silent || (seen.receives_ended && seen.receives_ended->fault == Fault::silent);
    const auto state = is_given_up                  ? LastHeard::State::given_up
                       : seen.is_used && !has_ended ? LastHeard::State::there
                                                    : LastHeard::State::gone;
    heard[at(peer)] = {
        .state = state, .at = seen.last_seen, .standing = process->newcomers.standing(peer)};
  }
  heard[at(process->rank)].standing = process->newcomers.standing(process->rank);
  const std::vector<Silence> silences = process->silences.look(heard, process->rank, now);
  for (int peer = 0; peer < std::ssize(processes_) && !stood_still; ++peer) {
    View& seen = view(*process, peer);
    if (silences[at(peer)] == Silence::none || peer == process->rank) continue;
    seen.suspected_at = now;
    if (silences[at(peer)] != Silence::given_up) continue;
    for (const auto* pending : {&seen.sends, &seen.receives}) {
      for (const auto& [tag, request] : std::map(*pending)) {
        seen.was_silent = true;
        fail(*process, request, {kSilent, Fault::silent});
      }
    }
  }
}

}  // namespace gossamer::simulation
