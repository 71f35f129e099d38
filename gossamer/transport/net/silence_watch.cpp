#include "gossamer/transport/net/silence_watch.h"

#include <algorithm>
#include <chrono>

#include "gossamer/transport/cut_off.h"

namespace gossamer {
namespace {

// A TCP connection sends again what was lost after at most so long.
constexpr std::chrono::minutes kLongestBackoff{2};
// Of a worker that says something at each beat of one second; see unheard().
constexpr std::chrono::seconds kUsualSilence{3};

}  // namespace

struct SilenceWatch::Look {
  std::span<const LastHeard> heard;
  int own;
  Deadline now;

  bool is_silent(std::size_t rank, Clock::duration longest) const {
    return heard[rank].state != LastHeard::State::gone && heard[rank].at < now - longest;
  }

  /// Whether those are enough that have said something since then.
  bool hears_enough(Deadline since, int least) const {
    Heard found;
    for (std::size_t rank = 0; rank < heard.size(); ++rank) {
      const auto number = static_cast<int>(rank);
      const auto& [state, at, standing] = heard[rank];
      const bool is_there = number == own || (state == LastHeard::State::there && at > since);
      if (is_there || state != LastHeard::State::gone) add(found, number, standing, is_there);
    }
    return may_go_on(found, least);
  }
};

void SilenceWatch::suspect(const Look& look) {
  suspected_at_.resize(look.heard.size());
  for (std::size_t rank = 0; rank < look.heard.size(); ++rank) {
    std::optional<Deadline>& since = suspected_at_[rank];
    if (!look.is_silent(rank, longest_ / 5 * 4)) {
      since.reset();
    } else if (!since || *since < look.heard[rank].at) {
      since = look.now;
    }
  }
}

bool SilenceWatch::is_patient(const Look& look) {
  if (look.hears_enough(look.now - longest_ / 2, *least_)) {
    waits_since_.reset();
  } else {
    if (!waits_since_) waits_since_ = look.now;
    const Clock::duration missed = look.now - *waits_since_ + longest_;
    patient_until_ = look.now + std::min<Clock::duration>(missed, kLongestBackoff);
  }
  return look.now < patient_until_;
}

std::optional<Unheard> SilenceWatch::unheard(int peer, Deadline now) const {
  if (now - looked_at_ > kUsualSilence) return {};
  std::optional<Unheard> found;
  for (std::size_t rank = 0; rank < heard_.size(); ++rank) {
    const auto& [state, at, standing] = heard_[rank];
    if (state != LastHeard::State::there || looked_at_ - at <= kUsualSilence) continue;
    const Unheard unheard{static_cast<int>(rank), at};
    if (unheard.rank == peer) return unheard;
    if (!found || at < found->since) found = unheard;
  }
  return found;
}

std::vector<Silence> SilenceWatch::look(std::span<const LastHeard> heard, int own, Deadline now) {
  const Look look{heard, own, now};
  heard_.assign(heard.begin(), heard.end());
  looked_at_ = now;
  std::vector<Silence> found(heard.size(), Silence::none);
  suspect(look);
  const bool waits = least_ && is_patient(look);
  for (std::size_t rank = 0; rank < heard.size(); ++rank) {
    const std::optional<Deadline> since = suspected_at_[rank];
    if (static_cast<int>(rank) == own || !since) continue;
    const bool is_known = !least_ || heard[rank].state == LastHeard::State::given_up;
    const bool may_be = is_known || look.hears_enough(*since, *least_);
    const bool is_given_up = look.is_silent(rank, longest_) && !waits && may_be;
    found[rank] = is_given_up ? Silence::given_up : Silence::suspected;
  }
  return found;
}

}  // namespace gossamer
