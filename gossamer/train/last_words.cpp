#include "gossamer/train/last_words.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gossamer/engine/tags.h"
#include "gossamer/train/worker.h"

namespace gossamer {
namespace {

using namespace std::chrono_literals;

/// The words of a transport to its peers when it is destroyed.
constexpr std::string_view kLeft = "the peer left";
/// A launcher that ends a job signals all processes, but not at the same time.
constexpr auto kSignalsAreApart = 500ms;
constexpr auto kProbe = 1s;
constexpr auto kNap = 10ms;

bool wait_for_stop(const std::atomic<bool>* stop) {
  const auto limit = Clock::now() + kSignalsAreApart;
  while (stop != nullptr && !*stop && Clock::now() < limit) {
    std::this_thread::sleep_for(kNap);
  }
  return stop != nullptr && *stop;
}

/// The workers that are gone without having said that they leave.
std::vector<int> lost_workers(Transport& transport) {
  const TransportInfo info = transport.describe();
  const auto limit = Clock::now() + kProbe;  // before the probes' own deadline
  const Tag tag{.step = -1, .stream = stream::kCollectives, .slot = -1};
  const std::byte nothing{};
  std::vector<std::pair<int, Request>> probes;
  for (int peer = 0; peer < info.workers; ++peer) {
    if (peer == info.rank) continue;
    probes.emplace_back(peer, transport.send(peer, tag, {&nothing, 1}, limit + kProbe));
  }
  std::vector<int> lost;
  for (const auto& [peer, probe] : probes) {
    Status status = transport.poll(probe);
    while (status.state == Status::State::pending && Clock::now() < limit) {
      transport.progress(std::min(limit, Clock::now() + kNap));
      status = transport.poll(probe);
    }
    transport.release(probe);
    try {
      if (status.error) std::rethrow_exception(status.error);  // a live peer's is pending
    } catch (const TransportError& error) {
      if (error.details().reason != kLeft) lost.push_back(peer);
    }
  }
  return lost;
}

/// What all but one say.
TransportError in_few_words(TransportError::Details details, int lost, int speaker) {
  details.operation.clear();
  details.reason = "ended, because worker " + std::to_string(lost) +
                   " does not answer any more; worker " + std::to_string(speaker) + " says more";
  return TransportError(details);
}

}  // namespace

void throw_last_words(const TransportError& error, Transport& transport,
                      const std::atomic<bool>* stop) {
  TransportError::Details details = error.details();
  const bool has_left = details.reason == kLeft;
  if (has_left ? wait_for_stop(stop) : stop != nullptr && *stop) throw Interrupted("interrupted");
  std::vector<int> lost;
  if (has_left) lost = lost_workers(transport);
  if (!has_left && details.fault == Fault::lost) lost = {details.peer};
  const int speaker = !lost.empty() && lost.front() == 0 ? 1 : 0;
  if (!lost.empty() && details.rank != speaker) throw in_few_words(details, lost.front(), speaker);
  if (has_left && !lost.empty()) {
    details.reason += "; ended without a word:";
    for (const int rank : lost) details.reason += " worker " + std::to_string(rank);
  } else {
    details.reason += "; see what worker " + std::to_string(details.peer) +
                      ", or who started it, said of its end";
  }
  throw TransportError(details);
}

}  // namespace gossamer
