#pragma once
/// The launchers of processes, and the environment variables in which each says who is who.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gossamer {

enum class Launcher { torchrun, mpirun, mvapich, flux, pals, jsrun, mpiexec, pmix, srun };

/// The value of an environment variable; nothing where it is not set or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Of this process.
std::optional<std::string> environment_variable(const std::string& name);

/// Names of variables; null where the launcher has no such variable.
struct LauncherVariables {
  Launcher launcher = Launcher::torchrun;
  const char* command = nullptr;  ///< what its users type
  const char* rank = nullptr;
  const char* workers = nullptr;
  const char* local_rank = nullptr;
  const char* local_workers = nullptr;
  const char* node = nullptr;   ///< number of the host
  const char* hosts = nullptr;  ///< how many
  const char* jobs[2] = {};     ///< what tells this job from others: the first that is set
  const char* passes = "";      ///< how its user gives all processes another variable
};

/// All launchers, the more special ones first: some also set the variables of later ones.
std::span<const LauncherVariables> launchers();
const LauncherVariables& variables_of(Launcher launcher);
std::string_view name_of(Launcher launcher);

/// The number of tasks of the Slurm step that this process is in, or of the job, which is then in
/// `variable`; nothing where Slurm does not say.
std::optional<int> slurm_tasks(const Environment& get, std::string* variable = nullptr);

/// Others that a launcher has started together with this process.
struct StartedTogether {
  Launcher launcher = Launcher::torchrun;
  std::string says;  ///< the variables that say so, with their values
};

/// Nothing where no variable says that this process is one of several: a batch script of Slurm, a
/// shell in a step of one task.
std::optional<StartedTogether> started_together(const Environment& get);

}  // namespace gossamer
