#include "gossamer/transport/cut_off.h"

#include <iterator>

namespace gossamer {
namespace {

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return ranks.size() == 1 ? "worker " + text : "workers " + text;
}

}  // namespace

bool may_go_on(const Heard& heard, int least) {
  if (heard.unheard.empty()) return true;
  const auto there = std::ssize(heard.there);
  if (least > 0) return there >= least;
  const auto unheard = std::ssize(heard.unheard);
  return there > unheard || (there == unheard && heard.there.front() < heard.unheard.front());
}

std::string why_cut_off(const Heard& heard, int least) {
  const std::string why = least > 0
                              ? "fewer than min_workers=" + std::to_string(least) + " are left"
                              : "they may go on without it";
  return "this worker is cut off: it hears " + list_of(heard.there) + ", and nothing of " +
         list_of(heard.unheard) + "; " + why + "; start it again once the network is back";
}

}  // namespace gossamer
