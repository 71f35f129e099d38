#pragma once
/// What torchrun, mpirun, srun or another launcher tells a process of its through its environment.

#include <optional>
#include <string>

#include "gossamer/base/launchers.h"

namespace gossamer {

/// One process among those that a launcher has started, and where they meet. The variables are
/// those of launchers(); MASTER_ADDR and MASTER_PORT always win.
struct LauncherEnv {
  Launcher launcher = Launcher::torchrun;
  int rank = 0;
  int workers = 1;
  std::string workers_from;  ///< the variable that says how many, with its value
  int local_rank = -1;       ///< −1: not told
  int local_workers = 0;     ///< 0: not told
  std::string node;          ///< number of the host; empty: not told
  std::string address;     ///< of the store: MASTER_ADDR; else loopback where all are on one host;
                           ///< else, under Slurm, the first host of SLURM_STEP_NODELIST or
                           ///< SLURM_LAUNCH_NODE_IPADDR
  int port = 0;            ///< MASTER_PORT; else derived from `job`; 0: any, for a worker alone
  bool has_store = false;  ///< the launcher serves one: TORCHELASTIC_USE_AGENT_STORE; else rank 0
  /// This start of this job: TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT; SLURM_JOB_ID and
  /// SLURM_STEP_ID; see LauncherVariables::jobs. Empty: not told.
  std::string job;
  std::string interface;  ///< to be reached through: GLOO_SOCKET_IFNAME; empty: any
};

/// The launcher that started this process; nothing in a plain shell, for which a step of one task
/// counts too, but under torchrun and mpirun. Where launchers started each other, the innermost
/// one. Throws std::invalid_argument for variables that are incomplete or contradict each other.
std::optional<LauncherEnv> find_launcher(const Environment& get);

}  // namespace gossamer
