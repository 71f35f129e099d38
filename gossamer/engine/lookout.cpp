#include "gossamer/engine/lookout.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

/// Between two looks, at least: each asks the transport once for each worker.
constexpr std::chrono::milliseconds kBetweenAsking{20};

}  // namespace

Lookout::Lookout(Transport& transport, const LostPeers& lost, int least)
    : transport_(transport), lost_(lost), least_(least), rank_(transport.describe().rank) {
  for (int peer = 0; peer < transport.describe().workers; ++peer) {
    watches_.push_back({.peer = peer});
  }
}

Lookout::~Lookout() {
  for (const Watch& watch : watches_) transport_.release(watch.receive);
}

void Lookout::look() {
  if (Clock::now() >= next_look_) look_now();
}

void Lookout::look_now() {
  look_at_all();
  if (!std::exchange(has_changed_, false)) return;
  const Heard found = heard();
  if (may_go_on(found, least_)) return;
  throw TransportError({.rank = rank_,
                        .peer = together(found).unheard.front(),
                        .operation = "",
                        .elapsed_s = 0,
                        .reason = why_cut_off(found, least_),
                        .fault = Fault::expelled});
}

void Lookout::look_at_all() {
  next_look_ = Clock::now() + kBetweenAsking;
  for (Watch& watch : watches_) {
    if (watch.peer != rank_) look(watch);
  }
}

/// One that has ended is looked for again as a later generation, once it has been let in.
void Lookout::look(Watch& watch) {
  const std::uint64_t generation = transport_.generation(watch.peer);
  if (watch.receive == 0) {
    if (watch.generation && generation <= *watch.generation) return;
    watch.receive = transport_.receive(watch.peer, {0, stream::kLookout, 0}, {}, Deadline::max());
  }
  const Status status = transport_.poll(watch.receive);
  if (status.state == Status::State::pending) {
    watch.generation = generation;
    has_changed_ = std::exchange(watch.is_unheard, false) || has_changed_;
    return;
  }
  const Fault fault = fault_of(status.error);
  if (fault == Fault::expelled) lost_.heed_expulsion(watch.peer);
  if (fault == Fault::replaced) lost_.heed_replacement(watch.peer);
  if (fault == Fault::silent) transport_.expel(watch.peer);
  const bool is_unheard = fault == Fault::silent || fault == Fault::expelled;
  if (watch.generation || is_unheard) {  // it has ended, or says nothing from the beginning
    has_changed_ = true;
    watch.is_unheard = is_unheard;
  }
  transport_.release(std::exchange(watch.receive, 0));
}

std::vector<int> Lookout::there() {
  look_at_all();
  std::vector<int> ranks;
  for (const Watch& watch : watches_) {
    const bool is_there = watch.receive != 0 && !watch.is_unheard;
    if (is_there || watch.peer == rank_) ranks.push_back(watch.peer);
  }
  return ranks;
}

Heard Lookout::heard() const {
  Heard found;
  for (const Watch& watch : watches_) {
    const bool is_known = watch.is_unheard || watch.receive != 0 || watch.peer == rank_;
    if (is_known) add(found, watch.peer, transport_.standing(watch.peer), !watch.is_unheard);
  }
  return found;
}

}  // namespace gossamer
