#include "gossamer/base/launchers.h"

#include <charconv>
#include <cstdlib>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr LauncherVariables kLaunchers[] = {
    {.launcher = Launcher::torchrun,
     .command = "torchrun",
     .rank = "RANK",
     .workers = "WORLD_SIZE",
     .local_rank = "LOCAL_RANK",
     .local_workers = "LOCAL_WORLD_SIZE",
     .node = "GROUP_RANK",
     .passes = "export MASTER_ADDR=..."},
    {.launcher = Launcher::mpirun,  // Open MPI
     .command = "mpirun",
     .rank = "OMPI_COMM_WORLD_RANK",
     .workers = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_workers = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .jobs = {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"},
     .passes = "mpirun -x MASTER_ADDR=..."},
    {.launcher = Launcher::mvapich,
     .command = "mpirun_rsh",
     .rank = "MV2_COMM_WORLD_RANK",
     .workers = "MV2_COMM_WORLD_SIZE",
     .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
     .local_workers = "MV2_COMM_WORLD_LOCAL_SIZE",
     .passes = "mpirun_rsh ... MASTER_ADDR=..."},
    {.launcher = Launcher::flux,
     .command = "flux run",
     .rank = "FLUX_TASK_RANK",
     .workers = "FLUX_JOB_SIZE",
     .local_rank = "FLUX_TASK_LOCAL_ID",
     .hosts = "FLUX_JOB_NNODES",
     .jobs = {"FLUX_JOB_ID"},
     .passes = "flux run --env=MASTER_ADDR=..."},
    {.launcher = Launcher::pals,
     .command = "mpiexec",
     .rank = "PALS_RANKID",
     .workers = "PMI_SIZE",
     .local_rank = "PALS_LOCAL_RANKID",
     .local_workers = "PALS_LOCAL_SIZE",
     .node = "PALS_NODEID",
     .jobs = {"PALS_APID"},
     .passes = "mpiexec --env MASTER_ADDR=..."},
    {.launcher = Launcher::jsrun,
     .command = "jsrun",
     .rank = "JSM_NAMESPACE_RANK",
     .workers = "JSM_NAMESPACE_SIZE",
     .local_rank = "JSM_NAMESPACE_LOCAL_RANK",
     .local_workers = "JSM_NAMESPACE_LOCAL_SIZE",
     .passes = "jsrun -E MASTER_ADDR=..."},
    {.launcher = Launcher::mpiexec,  // MPICH and Intel MPI
     .command = "mpiexec",
     .rank = "PMI_RANK",
     .workers = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_workers = "MPI_LOCALNRANKS",
     .passes = "mpiexec -genv MASTER_ADDR ..."},
    {.launcher = Launcher::srun,
     .command = "srun",
     .rank = "SLURM_PROCID",
     .workers = "SLURM_STEP_NUM_TASKS",
     .local_rank = "SLURM_LOCALID",
     .node = "SLURM_NODEID",
     .hosts = "SLURM_STEP_NUM_NODES",
     .jobs = {"SLURM_JOB_ID"},
     .passes = "export MASTER_ADDR=..."},
    {.launcher = Launcher::pmix,  // says nothing of how many there are
     .command = "prterun",
     .rank = "PMIX_RANK",
     .jobs = {"PMIX_NAMESPACE"},
     .passes = "prterun -x MASTER_ADDR=..."},
};

/// A whole number; nothing for everything else.
std::optional<int> number_in(const Environment& get, const char* name) {
  const auto text = name == nullptr ? std::nullopt : get(name);
  if (!text) return std::nullopt;
  int number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::span<const LauncherVariables> launchers() { return kLaunchers; }

const LauncherVariables& variables_of(Launcher launcher) {
  for (const LauncherVariables& row : kLaunchers) {
    if (row.launcher == launcher) return row;
  }
  GOSSAMER_ASSERT(false);
  return kLaunchers[0];
}

std::string_view name_of(Launcher launcher) { return variables_of(launcher).command; }

std::optional<int> slurm_tasks(const Environment& get, std::string* variable) {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    const auto tasks = number_in(get, name);
    if (!tasks) continue;
    if (variable != nullptr) *variable = name;
    return tasks;
  }
  return std::nullopt;
}

std::optional<StartedTogether> started_together(const Environment& get) {
  for (const LauncherVariables& row : kLaunchers) {
    const auto workers = number_in(get, row.workers);
    const auto rank = number_in(get, row.rank);
    // A job's size without a place in it is what a batch script or an allocation's shell sees.
    if (workers && *workers > 1 && (rank || row.launcher == Launcher::torchrun)) {
      return {{row.launcher, std::string(row.workers) + "=" + std::to_string(*workers)}};
    }
    if (row.workers == nullptr && rank && *rank > 0) {
      return {{row.launcher, std::string(row.rank) + "=" + std::to_string(*rank)}};
    }
  }
  return std::nullopt;
}

}  // namespace gossamer
