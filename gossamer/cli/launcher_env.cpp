#include "gossamer/cli/launcher_env.h"

#include <charconv>
#include <cstdlib>
#include <limits>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kPlace = "launcher";
constexpr int kMost = std::numeric_limits<int>::max();
constexpr const char* kLoopback = "127.0.0.1";

struct Range {
  int low = 0;
  int high = kMost;
};

/// Reads the variables of one launcher.
class Reader {
 public:
  Reader(const Environment& get, Launcher launcher) : get_(get), launcher_(launcher) {}

  std::string text(const std::string& name) const { return get_(name).value_or(""); }

  std::string needed(const std::string& name) const {
    const auto value = get_(name);
    if (!value) fail("the environment lacks " + name, "");
    return *value;
  }

  int number(const std::string& name, Range range) const {
    const std::string value = needed(name);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_whole = error == std::errc() && end == value.data() + value.size();
    if (is_whole && number >= range.low && number <= range.high) return number;
    const std::string up_to = range.high == kMost ? " up" : " to " + std::to_string(range.high);
    fail(name + " must be a whole number from " + std::to_string(range.low) + up_to, value);
  }

  int number_or(const std::string& name, Range range, int absent) const {
    return get_(name) ? number(name, range) : absent;
  }

  [[noreturn]] void fail(const std::string& what, const std::string& got) const {
    const std::string launcher(name_of(launcher_));
    fail_argument({.place = kPlace,
                   .what = what + ", as it would be under " + launcher,
                   .got = got,
                   .remedy = "start the workers with " + launcher +
                             ", or train with threads of one process: --transport threads"});
  }

 private:
  const Environment& get_;
  Launcher launcher_;
};

/// A port that all processes of a job derive alike: below those that systems give away by
/// themselves, and different for different jobs as a rule.
int port_of(const std::string& job) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  constexpr int kFirst = 10'000;
  constexpr int kPorts = 20'000;
  return kFirst + static_cast<int>(hash % kPorts);
}

void read_local(const Reader& read, LauncherEnv& env, const std::string& rank,
                const std::string& workers) {
  env.local_workers = read.number_or(workers, {1, env.workers}, 0);
  const int most = env.local_workers > 0 ? env.local_workers : env.workers;
  env.local_rank = read.number_or(rank, {0, most - 1}, -1);
}

/// Where rank 0 serves a store for those that have none.
void read_meeting_place(const Reader& read, LauncherEnv& env, const std::string& elsewhere) {
  env.address = read.text("MASTER_ADDR");
  if (env.address.empty()) env.address = elsewhere;
  if (env.address.empty()) {
    fail_argument({.place = kPlace,
                   .what = "nobody says where the workers of several hosts meet",
                   .got = "no MASTER_ADDR",
                   .remedy =
                       "set MASTER_ADDR to an address of rank 0's host that the others reach, "
                       "with mpirun -x MASTER_ADDR=..."});
  }
  env.port = read.number_or("MASTER_PORT", {1, 65535}, 0);
  if (env.port == 0 && env.job.empty()) {
    fail_argument({.place = kPlace,
                   .what = "the job has no number to derive a port from",
                   .got = "no MASTER_PORT",
                   .remedy = "set MASTER_PORT to a free port of rank 0's host"});
  }
  if (env.port == 0) env.port = port_of(env.job);
}

LauncherEnv from_torchrun(const Environment& get) {
  const Reader read(get, Launcher::torchrun);
  LauncherEnv env{.launcher = Launcher::torchrun};
  env.workers = read.number("WORLD_SIZE", {1});
  env.rank = read.number("RANK", {0, env.workers - 1});
  read_local(read, env, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  env.node = read.text("GROUP_RANK");
  env.address = read.needed("MASTER_ADDR");
  env.port = read.number("MASTER_PORT", {1, 65535});
  env.has_store = read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.job = read.text("TORCHELASTIC_RUN_ID") + "." + read.text("TORCHELASTIC_RESTART_COUNT");
  return env;
}

LauncherEnv from_mpirun(const Environment& get) {
  const Reader read(get, Launcher::mpirun);
  LauncherEnv env{.launcher = Launcher::mpirun};
  env.workers = read.number("OMPI_COMM_WORLD_SIZE", {1});
  env.rank = read.number("OMPI_COMM_WORLD_RANK", {0, env.workers - 1});
  read_local(read, env, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  env.job = read.text("OMPI_MCA_ess_base_jobid");
  if (env.job.empty()) env.job = read.text("PMIX_NAMESPACE");
  const bool is_one_host = env.local_workers == env.workers;
  read_meeting_place(read, env, is_one_host ? kLoopback : "");
  return env;
}

/// The first name of a list such as `gpu[03-07,12],login1`.
std::string first_host(const std::string& list) {
  const auto bracket = list.find('[');
  const auto comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto number_end = list.find_first_of("-,]", bracket);
  const auto closing = list.find(']', bracket);
  if (closing == std::string::npos) return "";
  const std::string rest = list.substr(closing + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, number_end - bracket - 1) +
         rest.substr(0, rest.find(','));
}

std::string meeting_host_of_slurm(const Reader& read) {
  const std::string hosts = read.text("SLURM_STEP_NODELIST");
  if (read.text("SLURM_STEP_NUM_NODES") == "1") return kLoopback;
  if (!hosts.empty()) return first_host(hosts);
  return read.text("SLURM_LAUNCH_NODE_IPADDR");
}

int tasks_of_slurm(const Reader& read) {
  const int all = read.number("SLURM_NTASKS", {1});
  return read.number_or("SLURM_STEP_NUM_TASKS", {1}, all);
}

LauncherEnv from_srun(const Environment& get) {
  const Reader read(get, Launcher::srun);
  LauncherEnv env{.launcher = Launcher::srun};
  env.workers = tasks_of_slurm(read);
  env.rank = read.number("SLURM_PROCID", {0, env.workers - 1});
  env.local_rank = read.number_or("SLURM_LOCALID", {0, env.workers - 1}, -1);
  env.node = read.text("SLURM_NODEID");
  env.job = read.needed("SLURM_JOB_ID") + "." + read.text("SLURM_STEP_ID");
  read_meeting_place(read, env, meeting_host_of_slurm(read));
  return env;
}

/// Whether srun started this process as one of several. The script of a batch job has the variables
/// of a task as well, but none of a step.
bool is_slurm_task(const Environment& get) {
  if (!get("SLURM_PROCID")) return false;
  if (tasks_of_slurm(Reader(get, Launcher::srun)) == 1) return false;
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_LAUNCH_NODE_IPADDR"}) {
    if (get(name)) return true;
  }
  fail_argument({.place = kPlace,
                 .what = "a batch script of Slurm is one process, but the job has several tasks",
                 .got = "SLURM_NTASKS=" + *get("SLURM_NTASKS"),
                 .remedy = "write srun gossamer train ..., or train with threads of one process: "
                           "--transport threads"});
}

/// RANK and WORLD_SIZE may be given next to a launcher's own variables, but not say otherwise.
void check_agrees(const Environment& get, const LauncherEnv& env) {
  const std::pair<const char*, int> known[] = {{"RANK", env.rank}, {"WORLD_SIZE", env.workers}};
  for (const auto& [name, value] : known) {
    const auto given = get(name);
    if (!given || *given == std::to_string(value)) continue;
    fail_argument({.place = kPlace,
                   .what = std::string(name) + " must be " + std::to_string(value) + ", as " +
                           std::string(name_of(env.launcher)) + " has it",
                   .got = *given,
                   .remedy = std::string("unset ") + name});
  }
}

}  // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::mpirun:
      return "mpirun";
    case Launcher::srun:
      return "srun";
  }
  GOSSAMER_ASSERT(false);
  return "";
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<LauncherEnv> find_launcher(const Environment& get) {
  std::optional<LauncherEnv> env;
  if (get("TORCHELASTIC_RUN_ID")) {
    env = from_torchrun(get);
  } else if (get("OMPI_COMM_WORLD_RANK") || get("OMPI_COMM_WORLD_SIZE")) {
    env = from_mpirun(get);
  } else if (is_slurm_task(get)) {
    env = from_srun(get);
  } else if (get("RANK") || get("WORLD_SIZE")) {
    env = from_torchrun(get);
  }
  if (!env) return env;
  check_agrees(get, *env);
  env->interface = get("GLOO_SOCKET_IFNAME").value_or("");
  return env;
}

}  // namespace gossamer
