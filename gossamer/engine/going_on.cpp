#include "gossamer/engine/going_on.h"

#include "gossamer/engine/peers.h"
#include "gossamer/exchange/pattern_facts.h"

namespace gossamer {

GoingOn::GoingOn(Transport& transport, Collectives& collectives, const EngineOptions& options,
                 bool counts)
    : transport_(transport),
      collectives_(collectives),
      agrees_(counts || settles(find_pattern_facts(options.pattern))),
      lost_(transport, company_of(options, collectives.rank()), counts ? kStepsOfACensus : 0),
      lookout_(transport, lost_, options.min_workers),
      admission_(
          transport, lost_, agrees_,
          agrees_ ? [this] { return lookout_.there(); } : std::function<std::vector<int>()>()) {
  collectives.go_on_without(lost_, lookout_);
  transport.hold_back_newcomers();
  if (!counts) return;
  census_.emplace(transport, collectives.seating(), lost_, lookout_, options.timeout_s,
                  [this, also = options.while_waiting] {
                    if (also) also();
                    admission_.look(steps_);
                    collectives_.answer_late();
                  });
}

void GoingOn::while_waiting(std::int64_t steps) {
  admission_.look(steps);
  collectives_.answer_late();
  if (census_) census_->look();
}

std::optional<Seating> GoingOn::count(std::int64_t steps) {
  steps_ = steps;
  return census_ ? census_->look(steps) : std::nullopt;
}

void GoingOn::look(std::int64_t steps) {
  admission_.look(steps);
  collectives_.answer_late();
  lookout_.look();
}

void GoingOn::begin_with(Arrival& arrival, std::int64_t steps) {
  if (!agrees_) transport_.count_in(collectives_.rank(), Standing::counted);
  lost_.begin_with(arrival.there(), steps);
  for (const int peer : arrival.absent()) lost_.lose({peer, "it was not there yet"});
  admission_.go_on_with(arrival.reception());
}

}  // namespace gossamer
