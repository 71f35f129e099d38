#include "gossamer/transport/cut_off.h"

#include <algorithm>
#include <iterator>

namespace gossamer {
namespace {

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return ranks.size() == 1 ? "worker " + text : "workers " + text;
}

bool hears_enough(const Heard& heard, int least) {
  if (heard.unheard.empty()) return true;
  const auto there = std::ssize(heard.there);
  if (least > 0) return there >= least;
  const auto unheard = std::ssize(heard.unheard);
  return there > unheard || (there == unheard && heard.there.front() < heard.unheard.front());
}

}  // namespace

void add(Heard& heard, int rank, Standing standing, bool is_there) {
  if (standing == Standing::stranger) return;
  const bool is_new = standing == Standing::agreed;
  std::vector<int>& ranks = is_there ? (is_new ? heard.new_there : heard.there)
                                     : (is_new ? heard.new_unheard : heard.unheard);
  ranks.push_back(rank);
}

Heard together(const Heard& heard) {
  Heard all;
  std::ranges::merge(heard.there, heard.new_there, std::back_inserter(all.there));
  std::ranges::merge(heard.unheard, heard.new_unheard, std::back_inserter(all.unheard));
  return all;
}

bool may_go_on(const Heard& heard, int least) {
  const bool is_enough = hears_enough(together(heard), least);
  return is_enough && (least > 0 || hears_enough(heard, least));
}

std::string why_cut_off(const Heard& heard, int least) {
  const std::string why = least > 0
                              ? "fewer than min_workers=" + std::to_string(least) + " are left"
                              : "they may go on without it";
  const Heard all = together(heard);
  return "this worker is cut off: it hears " + list_of(all.there) + ", and nothing of " +
         list_of(all.unheard) + "; " + why + "; start it again once the network is back";
}

}  // namespace gossamer
