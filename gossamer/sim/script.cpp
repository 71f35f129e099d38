#include "gossamer/sim/script.h"

#include <algorithm>
#include <tuple>

#include "gossamer/base/errors.h"

namespace gossamer::sim {
namespace {

constexpr std::size_t kKeptWithoutPeriod = 256;

template <class T>
std::span<const T> part(const std::vector<T>& all, int begin, int end) {
  return {all.data() + begin, all.data() + end};
}

/// Where a worker takes the message of a sender and slot.
struct Place {
  int from = 0;
  int slot = 0;
  int phase = 0;
  int index = 0;
  std::int64_t bytes = 0;
  auto key() const { return std::tie(from, slot); }
};

std::vector<Place> places_of(const Plan& plan, DType dtype) {
  std::vector<Place> places;
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    int index = 0;
    for (const Message& message : plan.phases[p].receives) {
      const auto bytes = static_cast<std::int64_t>(bytes_of(plan, message.slice, dtype));
      places.push_back({message.peer, message.slot, static_cast<int>(p), index++, bytes});
    }
  }
  std::ranges::sort(places, {}, [](const Place& place) { return place.key(); });
  return places;
}

Script script_of(const Plan& plan, int worker, DType dtype, Network& network,
                 const std::vector<std::vector<Place>>& places) {
  Script script;
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.sends) {
      const std::vector<Place>& theirs = places[static_cast<std::size_t>(message.peer)];
      const auto at = std::ranges::lower_bound(theirs, std::tie(worker, message.slot), {},
                                               [](const Place& place) { return place.key(); });
      const auto bytes = static_cast<std::int64_t>(bytes_of(plan, message.slice, dtype));
      GOSSAMER_ASSERT(at != theirs.end() && at->from == worker && at->slot == message.slot);
      GOSSAMER_ASSERT(at->bytes == bytes);
      script.all_sends.push_back({message.peer, network.edge(worker, message.peer), bytes,
                                  at->phase, at->index, message.slice.buffer == 0});
    }
    for (const Message& message : phase.receives) {
      script.all_receives.push_back({message.peer, network.edge(message.peer, worker)});
    }
    script.phases.push_back(
        {static_cast<int>(script.all_sends.size()), static_cast<int>(script.all_receives.size())});
  }
  return script;
}

/// Members of a crowd that are on one host have as much to do as its first one.
void add_work_of_crowds(RoundScripts& made, const Round& round, const HostShape& shape,
                        std::int64_t count, DType dtype, const PlanOptions& options) {
  const std::vector<int> host_of = shape.hosts_by_rank();
  for (const std::vector<int>& group : round.groups) {
    if (made.crowd(group.front()) == nullptr) continue;
    const HostWork work = host_work(compile(round, shape, group.front(), count, options), host_of,
                                    group.front(), {dtype, options.finished_averages});
    for (const int member : group) made.work[static_cast<std::size_t>(member)] = work;
  }
}

}  // namespace

std::span<const ScriptSend> Script::sends(int phase) const {
  const auto p = static_cast<std::size_t>(phase);
  return part(all_sends, p == 0 ? 0 : phases[p - 1].sends, phases[p].sends);
}

std::span<const ScriptReceive> Script::receives(int phase) const {
  const auto p = static_cast<std::size_t>(phase);
  return part(all_receives, p == 0 ? 0 : phases[p - 1].receives, phases[p].receives);
}

const Crowd* RoundScripts::crowd(int worker) const {
  const int index = crowd_of.empty() ? -1 : crowd_of[static_cast<std::size_t>(worker)];
  return index < 0 ? nullptr : &crowds[static_cast<std::size_t>(index)];
}

RoundScripts make_scripts(const SimMethod& method, const Round& round, const HostShape& shape,
                          std::int64_t count, DType dtype, int largest_group, Network& network) {
  const PlanOptions options = plan_options(method);
  RoundScripts made;
  for (const std::vector<int>& group : round.groups) {
    if (std::ssize(group) <= largest_group || options.separate_neighbours) continue;
    made.crowd_of.resize(static_cast<std::size_t>(round.workers), -1);
    for (int member : group) {
      made.crowd_of[static_cast<std::size_t>(member)] = static_cast<int>(made.crowds.size());
    }
    made.crowds.push_back(make_crowd(group, count, dtype, options, network));
  }
  const std::vector<int> host_of = shape.hosts_by_rank();
  const HostWorkOptions work_of{dtype, options.finished_averages};
  std::vector<Plan> plans;
  std::vector<std::vector<Place>> places;
  std::size_t sends = 0;
  std::size_t receives = 0;
  for (int worker = 0; worker < round.workers; ++worker) {
    plans.push_back(made.crowd(worker) ? Plan{} : compile(round, shape, worker, count, options));
    made.work.push_back(host_work(plans.back(), host_of, worker, work_of));
    places.push_back(places_of(plans.back(), dtype));
    receives += places.back().size();
  }
  for (int worker = 0; worker < round.workers; ++worker) {
    const Plan& plan = plans[static_cast<std::size_t>(worker)];
    made.by_worker.push_back(script_of(plan, worker, dtype, network, places));
    sends += made.by_worker.back().all_sends.size();
  }
  GOSSAMER_ASSERT(sends == receives);
  add_work_of_crowds(made, round, shape, count, dtype, options);
  return made;
}

ScriptBook::ScriptBook(const SimMethod& method, const HostShape& shape, const Workload& workload,
                       int largest_group, Network& network)
    : method_(method),
      shape_(shape),
      workload_(workload),
      largest_group_(largest_group),
      network_(network) {}

ScriptBook::Scripts ScriptBook::find(int bucket, std::int64_t exchange) {
  const std::int64_t elements = workload_.buckets[static_cast<std::size_t>(bucket)];
  const bool is_complete = method_.pattern->rounds == Rounds::complete;
  const int period = is_complete ? 1 : method_.schedule.period;
  std::int64_t t = exchange / method_.pattern->stages() + (method_.stagger ? bucket : 0);
  if (period > 0) t %= period;
  Scripts& scripts = scripts_[{t, elements}];
  if (scripts) return scripts;
  if (!rounds_.contains(t)) {
    rounds_[t] = is_complete ? complete_round(shape_.workers()) : round_at(method_.schedule, t, {});
  }
  const Scripts made = scripts = std::make_shared<const RoundScripts>(make_scripts(
      method_, rounds_[t], shape_, elements, workload_.dtype, largest_group_, network_));
  if (period > 0) return made;
  while (scripts_.size() > kKeptWithoutPeriod) scripts_.erase(scripts_.begin());
  while (rounds_.size() > kKeptWithoutPeriod) rounds_.erase(rounds_.begin());
  return made;
}

}  // namespace gossamer::sim
