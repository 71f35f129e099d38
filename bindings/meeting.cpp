#include "bindings/meeting.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gossamer/base/address.h"
#include "gossamer/base/clock.h"
#include "gossamer/base/folder_lock.h"
#include "gossamer/base/launchers.h"
#include "gossamer/base/lines.h"
#include "gossamer/transport/net/hosts.h"
#include "gossamer/transport/net/job_secret.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer::python {
namespace {

using PlaceWords = std::tuple<std::string, std::string, std::string, int, int>;

std::tuple<std::vector<int>, std::vector<std::string>, std::string> hosts_of(
    const std::vector<PlaceWords>& places, const std::string& who) {
  std::vector<Place> found;
  for (const auto& [machine, name, node, local_rank, local_workers] : places) {
    found.push_back({machine, name, node, local_rank, local_workers});
  }
  const FoundHosts hosts = find_hosts(found, who);
  return {hosts.shape.workers_per_host, hosts.names, hosts.warning};
}

void bind_secrets(py::module_& module) {
  module.def(
      "token_by_secret",
      [](const std::string& nonce) -> std::optional<std::string> {
        const auto secret = secret_of_user(environment_variable);
        return secret ? std::optional(token_of(*secret, nonce)) : std::nullopt;
      },
      py::arg("nonce"),
      "The job's token by GOSSAMER_SECRET_FILE or GOSSAMER_SECRET; None where neither is set.");
  module.def("random_digits", &random_digits, "A number that nobody can guess; 64 digits.");
  module.def("sealed", &sealed, py::arg("token"), py::arg("rank"), py::arg("words"),
             "A rank's words for a store that is not trusted.");
  module.def(
      "opened",
      [](const std::string& token, int rank, const std::string& words) {
        return opened(token, rank, words, "Gossip");
      },
      py::arg("token"), py::arg("rank"), py::arg("words"),
      "What was sealed; ValueError for anything else.");
}

void bind_hosts(py::module_& module) {
  module.def(
      "is_loopback", [](const std::string& address) { return is_loopback(address); },
      py::arg("address"), "Whether an address, in numbers, leads to no other machine.");
  module.def("machine_of_this_process", &machine_of_this_process, R"(
    The same for all processes of one machine in one network namespace, and for no others; empty
    where the system does not say.)");
  module.def("find_hosts", &hosts_of, py::arg("places"), py::arg("who"), R"(
    (workers per host, names of the hosts, warning) of places by rank.

    A place: machine_of_this_process(), the machine's name, the launcher's number of the host or
    nothing, its number of the worker on the host or -1, its number of the host's workers or 0. The
    warning, if any, says where the launcher's words are not true. ValueError, with ``who`` as its
    place, where a host's ranks do not follow each other.
    )");
  module.def("reach_of_shared_memory", &reach_of_shared_memory, R"(
    The same for all processes that can share memory with each other; empty where none can.)");
}

}  // namespace

void bind_meeting(py::module_& module) {
  py::class_<FolderLock>(module, "FolderLock",
                         "One job at a time in a folder, until this or its process ends.")
      .def(py::init([](const std::string& folder, const std::string& who, const std::string& job) {
             return FolderLock(folder, who, "Gossip", job);
           }),
           py::arg("folder"), py::arg("who"), py::arg("job") = "", R"(
    IoError, which says who has it, where another job uses the folder. ``job``: a word that
    processes of one job have in common, any of which takes the folder over.)")
      .def("check", &FolderLock::check,
           "IoError where another job has taken it over, on a file system without locks.");
  module.def(
      "started_together",
      []() -> std::optional<std::pair<std::string, std::string>> {
        const auto found = started_together(environment_variable);
        if (!found) return std::nullopt;
        return {{std::string(name_of(found->launcher)), found->says}};
      },
      R"(
    Which launcher has started this process as one of several, and the variables that say so;
    None where no variable does.)");
  bind_secrets(module);
  module.def(
      "seconds_awake",
      [] {
        static const StandstillWatch watch;
        return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
      },
      "A clock for deadlines, in seconds, without the time in which this process stood still.");
  bind_hosts(module);
  module.def(
      "first_difference",
      [](const std::string& here, const std::string& there) {
        const LinePair lines = first_difference(here, there);
        return std::pair(lines.here, lines.there);
      },
      py::arg("here"), py::arg("there"),
      "The first lines of two texts that differ; \"nothing\" where a text has ended.");
}

}  // namespace gossamer::python
