#pragma once
/// What torchrun, mpirun or srun tell a process of theirs through its environment.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gossamer {

enum class Launcher { torchrun, mpirun, srun };

std::string_view name_of(Launcher launcher);

/// One process among those that a launcher has started, and where they meet. The comments name the
/// variables by launcher: torchrun; Open MPI; Slurm. MASTER_ADDR and MASTER_PORT always win.
struct LauncherEnv {
  Launcher launcher = Launcher::torchrun;
  int rank = 0;           ///< RANK; OMPI_COMM_WORLD_RANK; SLURM_PROCID
  int workers = 1;        ///< WORLD_SIZE; OMPI_COMM_WORLD_SIZE; SLURM_STEP_NUM_TASKS, SLURM_NTASKS
  int local_rank = -1;    ///< LOCAL_RANK; OMPI_COMM_WORLD_LOCAL_RANK; SLURM_LOCALID; −1: not told
  int local_workers = 0;  ///< LOCAL_WORLD_SIZE; OMPI_COMM_WORLD_LOCAL_SIZE; none; 0: not told
  std::string node;       ///< number of the host: GROUP_RANK; none; SLURM_NODEID; empty: not told
  std::string address;    ///< of the store: MASTER_ADDR; else loopback where all are on one host;
                          ///< else, under Slurm, the first host of SLURM_STEP_NODELIST or
                          ///< SLURM_LAUNCH_NODE_IPADDR
  int port = 0;           ///< MASTER_PORT; else derived from `job`
  bool has_store = false;  ///< the launcher serves one: TORCHELASTIC_USE_AGENT_STORE; else rank 0
  /// This start of this job: TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT;
  /// OMPI_MCA_ess_base_jobid or PMIX_NAMESPACE; SLURM_JOB_ID and SLURM_STEP_ID.
  std::string job;
  std::string interface;  ///< to be reached through: GLOO_SOCKET_IFNAME; empty: any
};

/// The value of an environment variable; nothing where it is not set or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Of this process.
std::optional<std::string> environment_variable(const std::string& name);

/// The launcher that started this process; nothing in a plain shell, for which a Slurm step of one
/// task counts too. Where launchers started each other, the innermost one. Throws
/// std::invalid_argument for variables that are incomplete or contradict each other.
std::optional<LauncherEnv> find_launcher(const Environment& get);

}  // namespace gossamer
