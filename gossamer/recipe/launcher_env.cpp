#include "gossamer/recipe/launcher_env.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kPlace = "launcher";
constexpr int kMost = std::numeric_limits<int>::max();
constexpr const char* kLoopback = "127.0.0.1";
constexpr std::string_view kOrThreads =
    ", or train with threads of one process: --transport threads";

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
                   .remedy = "start the workers with " + launcher + std::string(kOrThreads)});
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

/// What the launcher's own row of variables says.
void read_place(const Reader& read, const LauncherVariables& row, LauncherEnv& env) {
  env.workers = read.number(row.workers, {1});
  env.workers_from = std::string(row.workers) + "=" + std::to_string(env.workers);
  const Range ranks{0, env.workers - 1};
  // Of a worker alone there is nothing to be said.
  env.rank = env.workers == 1 ? read.number_or(row.rank, ranks, 0) : read.number(row.rank, ranks);
  if (row.local_workers != nullptr) {
    env.local_workers = read.number_or(row.local_workers, {1, env.workers}, 0);
  }
  const int most = env.local_workers > 0 ? env.local_workers : env.workers;
  if (row.local_rank != nullptr) {
    env.local_rank = read.number_or(row.local_rank, {0, most - 1}, -1);
  }
  if (row.node != nullptr) env.node = read.text(row.node);
  for (const char* job : row.jobs) {
    if (job != nullptr && env.job.empty()) env.job = read.text(job);
  }
}

/// Where rank 0 serves a store for those that have none.
void read_meeting_place(const Reader& read, LauncherEnv& env, const std::string& elsewhere) {
  if (env.workers == 1) {  // nobody to meet
    env.address = kLoopback;
    return;
  }
  env.address = read.text("MASTER_ADDR");
  if (env.address.empty()) env.address = elsewhere;
  if (env.address.empty()) {
    fail_argument(
        {.place = kPlace,
         .what = "nobody says where the workers of several hosts meet",
         .got = "no MASTER_ADDR",
         .remedy = "set MASTER_ADDR to an address of rank 0's host that the others reach, "
                   "with " +
                   std::string(variables_of(env.launcher).passes) + std::string(kOrThreads)});
  }
  env.port = read.number_or("MASTER_PORT", {1, 65535}, 0);
  if (env.port == 0 && env.job.empty()) {
    std::string list;
    for (const char* job : variables_of(env.launcher).jobs) {
      if (job != nullptr) list += std::string(" nor ") + job;
    }
    fail_argument(
        {.place = kPlace,
         .what = "the job has no number to derive a port from",
         .got = (list.empty() ? "no MASTER_PORT" : "neither MASTER_PORT") + list,
         .remedy = "set MASTER_PORT to a free port of rank 0's host" + std::string(kOrThreads)});
  }
  if (env.port == 0) env.port = port_of(env.job);
}

LauncherEnv from_torchrun(const Environment& get) {
  const Reader read(get, Launcher::torchrun);
  LauncherEnv env{.launcher = Launcher::torchrun};
  read_place(read, variables_of(env.launcher), env);
  env.job = read.text("TORCHELASTIC_RUN_ID") + "." + read.text("TORCHELASTIC_RESTART_COUNT");
  if (env.workers > 1) {
    read.needed("MASTER_ADDR");
    read.needed("MASTER_PORT");
    env.has_store = read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  }
  read_meeting_place(read, env, "");
  return env;
}

/// Of a launcher that says how many workers there are, and nothing of where they meet.
LauncherEnv from_row(const Environment& get, const LauncherVariables& row) {
  const Reader read(get, row.launcher);
  LauncherEnv env{.launcher = row.launcher};
  read_place(read, row, env);
  const bool is_one_host =
      env.local_workers == env.workers || (row.hosts != nullptr && read.text(row.hosts) == "1");
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

LauncherEnv from_srun(const Environment& get) {
  const Reader read(get, Launcher::srun);
  LauncherEnv env{.launcher = Launcher::srun};
  std::string variable = "SLURM_STEP_NUM_TASKS";
  slurm_tasks(get, &variable);
  env.workers = read.number(variable, {1});
  env.workers_from = variable + "=" + std::to_string(env.workers);
  env.rank = read.number("SLURM_PROCID", {0, env.workers - 1});
  env.local_rank = read.number_or("SLURM_LOCALID", {0, env.workers - 1}, -1);
  env.node = read.text("SLURM_NODEID");
  env.job = read.text("SLURM_JOB_ID");
  if (!env.job.empty()) env.job += "." + read.text("SLURM_STEP_ID");
  read_meeting_place(read, env, meeting_host_of_slurm(read));
  return env;
}

bool is_in_slurm_step(const Environment& get) {
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_LAUNCH_NODE_IPADDR"}) {
    if (get(name)) return true;
  }
  return false;
}

/// Whether srun started this process as one of several. The script of a batch job has the variables
/// of a task as well, but none of a step.
bool is_slurm_task(const Environment& get) {
  if (!get("SLURM_PROCID")) return false;
  std::string variable;
  const auto tasks = slurm_tasks(get, &variable);
  if (tasks == 1) return false;
  if (is_in_slurm_step(get)) return true;
  if (!tasks) return false;  // a script of one process, whatever it starts later
  fail_argument({.place = kPlace,
                 .what = "a batch script of Slurm is one process, but the job has several tasks",
                 .got = variable + "=" + std::to_string(*tasks),
                 .remedy = "write srun gossamer train ..., or train with threads of one process: "
                           "--transport threads"});
}

/// srun with a PMI of MPI's sets both; it knows more than mpiexec of where the workers are.
bool is_pmi_of_slurm(const Environment& get) {
  const bool is_of_hydra = get("MPI_LOCALNRANKS").has_value();
  return !is_of_hydra && is_in_slurm_step(get) && get("PMI_RANK") == get("SLURM_PROCID") &&
         get("PMI_SIZE") == get("SLURM_STEP_NUM_TASKS");
}

/// A launcher of the table whose variables are there; but for mpirun, a worker alone is what it
/// would be without one.
const LauncherVariables* find_row(const Environment& get) {
  for (const LauncherVariables& row : launchers()) {
    const bool is_special = row.launcher == Launcher::torchrun || row.launcher == Launcher::srun;
    if (is_special || row.workers == nullptr) continue;
    if (row.launcher == Launcher::mpiexec && is_pmi_of_slurm(get)) continue;
    const bool has_own_size = row.launcher != Launcher::pals;  // PMI_SIZE is mpiexec's, too
    if (!get(row.rank) && !(has_own_size && get(row.workers))) continue;
    if (row.launcher != Launcher::mpirun && get(row.workers) == "1") continue;
    return &row;
  }
  return nullptr;
}

/// Where something of MPI started this process, but nothing says how many there are.
void refuse_unknown_size(const Environment& get) {
  const LauncherVariables& row = variables_of(Launcher::pmix);
  const auto rank = get(row.rank);
  const bool is_known_to_be_alone = get("SLURM_PROCID") && slurm_tasks(get) == 1;
  if (!rank || is_known_to_be_alone) return;
  fail_argument({.place = kPlace,
                 .what = "a launcher started this process, but nothing says how many there are",
                 .got = std::string(row.rank) + "=" + *rank,
                 .remedy = "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or train with "
                           "threads of one process: --transport threads"});
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

std::optional<LauncherEnv> find_launcher(const Environment& get) {
  std::optional<LauncherEnv> env;
  const LauncherVariables* row = find_row(get);
  if (get("TORCHELASTIC_RUN_ID")) {
    env = from_torchrun(get);
  } else if (row != nullptr) {
    env = from_row(get, *row);
  } else if (is_slurm_task(get)) {
    env = from_srun(get);
  } else if (get("RANK") || get("WORLD_SIZE")) {
    env = from_torchrun(get);
  } else {
    refuse_unknown_size(get);
  }
  if (!env) return env;
  check_agrees(get, *env);
  env->interface = get("GLOO_SOCKET_IFNAME").value_or("");
  return env;
}

}  // namespace gossamer
