#include "gossamer/transport/net/hosts.h"

#include <sys/stat.h>

#include <fstream>
#include <map>
#include <set>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

// Note [Hosts follow from what is true]: workers of different machines, or of different network
// namespaces, are never on one host, whatever a launcher or the machines' names say. Names decide
// only where the system does not tell machines apart. A launcher's words may split one machine into
// several hosts, which is how gossip is seen on one machine: by the number of the host, or, without
// such numbers, by local ranks that begin again once a host has the workers that it was to have.

/// What cannot be one host is different here.
std::string ground_of(const Place& place) {
  return place.machine.empty() ? "name " + place.name : "machine " + place.machine;
}

std::string key_of(const Place& place) { return ground_of(place) + "\n" + place.node; }

std::string label_of(const Place& place) { return place.node.empty() ? place.name : place.node; }

/// Whether local ranks begin again at `rank`, where the host before has all that it was to have.
bool begins_by_local_rank(const std::vector<Place>& places, std::size_t rank, int count) {
  const Place& place = places[rank];
  const Place& before = places[rank - 1];
  return place.node.empty() && place.local_workers > 0 && place.local_rank == 0 &&
         before.local_workers == count && before.local_rank == count - 1;
}

/// How machines are called where labels are the same: a#0, a#1.
std::vector<std::string> distinct(const std::vector<std::string>& labels) {
  std::map<std::string, int> times;
  for (const std::string& label : labels) ++times[label];
  std::map<std::string, int> next;
  std::vector<std::string> names;
  for (const std::string& label : labels) {
    const bool is_shared = times[label] > 1;
    names.push_back(is_shared ? label + "#" + std::to_string(next[label]++) : label);
  }
  return names;
}

[[noreturn]] void refuse(std::string_view who, const std::string& what, const std::string& got) {
  fail_argument({.place = who,
                 .what = what,
                 .got = got,
                 .remedy = "start the job with torchrun, with mpirun --map-by slot, or with srun "
                           "--distribution=block"});
}

[[noreturn]] void refuse_deal(const std::vector<Place>& places, std::string_view who) {
  std::vector<std::string> keys;
  std::vector<std::string> labels;
  std::map<std::string, std::size_t> known;
  for (const Place& place : places) {
    if (known.emplace(key_of(place), labels.size()).second) labels.push_back(label_of(place));
  }
  const std::vector<std::string> names = distinct(labels);
  std::string list;
  for (const Place& place : places) {
    list += (list.empty() ? "" : ", ") + names[known[key_of(place)]];
  }
  refuse(who, "ranks must be dealt host by host", "hosts " + list + " in rank order");
}

HostShape shape_of(const std::vector<Place>& places, std::string_view who) {
  HostShape shape;
  std::set<std::string> seen;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const std::string key = key_of(places[rank]);
    const bool goes_on = rank > 0 && key == key_of(places[rank - 1]);
    if (!goes_on && !seen.insert(key).second) refuse_deal(places, who);
    if (!goes_on || begins_by_local_rank(places, rank, shape.workers_per_host.back())) {
      shape.workers_per_host.push_back(0);
    }
    ++shape.workers_per_host.back();
  }
  return shape;
}

/// What the launcher says of a worker's place on its host, where that is not so.
std::string false_place(const std::vector<Place>& places, const FoundHosts& found) {
  for (int host = 0; host < found.shape.hosts(); ++host) {
    const int count = found.shape.workers_per_host[static_cast<std::size_t>(host)];
    const int first = found.shape.first_rank(host);
    const std::string name = "host '" + found.names[static_cast<std::size_t>(host)] + "'";
    for (int rank = first; rank < first + count; ++rank) {
      const Place& place = places[static_cast<std::size_t>(rank)];
      const std::string who = "rank " + std::to_string(rank);
      if (place.local_workers > 0 && place.local_workers != count) {
        return who + " was told that its " + name + " has " + std::to_string(place.local_workers) +
               " workers, but it has " + std::to_string(count);
      }
      if (place.local_rank >= 0 && place.local_rank != rank - first) {
        return who + " was told that it is worker " + std::to_string(place.local_rank) +
               " of its " + name + ", but it is worker " + std::to_string(rank - first);
      }
    }
  }
  return "";
}

/// Hosts on different machines that the launcher's words, or names without such words, make one.
std::string false_unity(const std::vector<Place>& places, const HostShape& shape) {
  std::map<std::string, int> known;
  for (int host = 0; host < shape.hosts(); ++host) {
    const int rank = shape.first_rank(host);
    const Place& place = places[static_cast<std::size_t>(rank)];
    if (place.node.empty() && place.local_workers > 0) continue;  // says true, see false_place()
    const std::string label = place.node.empty() ? "the name '" + place.name + "'"
                                                 : "the launcher's host number " + place.node;
    const auto [at, is_new] = known.emplace(label, rank);
    if (is_new || ground_of(places[static_cast<std::size_t>(at->second)]) == ground_of(place)) {
      continue;
    }
    return "ranks " + std::to_string(at->second) + " and " + std::to_string(rank) +
           " are on different machines, but both have " + label;
  }
  return "";
}

/// Whether the system, and not names alone, tells the machines apart.
bool is_known(const std::vector<Place>& places) {
  for (const Place& place : places) {
    if (place.machine.empty()) return false;
  }
  return true;
}

}  // namespace

std::string machine_of_this_process() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return "";
  return boot + "/" + std::to_string(network.st_ino);
}

FoundHosts find_hosts(const std::vector<Place>& places, std::string_view who) {
  FoundHosts found{.shape = shape_of(places, who), .names = {}, .warning = {}};
  std::vector<std::string> labels;
  for (int host = 0; host < found.shape.hosts(); ++host) {
    labels.push_back(label_of(places[static_cast<std::size_t>(found.shape.first_rank(host))]));
  }
  found.names = distinct(labels);
  std::string wrong = false_place(places, found);
  if (!wrong.empty() && !is_known(places)) {
    refuse(who, "the launcher's numbers must fit the names of the machines", wrong);
  }
  if (wrong.empty()) wrong = false_unity(places, found.shape);
  if (!wrong.empty()) {
    const int hosts = found.shape.hosts();
    found.warning = wrong + "; boot id and network namespace decide, which makes " +
                    std::to_string(hosts) + (hosts == 1 ? " host" : " hosts") +
                    "; mend what the launcher says (GROUP_RANK, LOCAL_RANK, LOCAL_WORLD_SIZE)";
  }
  return found;
}

}  // namespace gossamer
