#include "gossamer/recipe/launcher_env.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace gossamer {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LauncherEnv> found_in(const Variables& variables) {
  return find_launcher([&](const std::string& name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return at->second;
  });
}

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

std::string message_for(const Variables& variables) {
  try {
    found_in(variables);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"GROUP_RANK", "1"},
                             {"MASTER_ADDR", "10.0.0.1"},
                             {"MASTER_PORT", "777"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "run"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"}};

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"OMPI_MCA_ess_base_jobid", "123456"}};

const Variables kSrun = {{"SLURM_PROCID", "6"},
                         {"SLURM_NTASKS", "8"},
                         {"SLURM_LOCALID", "2"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_JOB_ID", "42"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NODELIST", "gpu[03-07,12],login1"}};

TEST(FindLauncher, FindsNoneInAPlainShell) {
  EXPECT_FALSE(found_in({}));
  EXPECT_FALSE(found_in({{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1"}}));
  EXPECT_FALSE(found_in({{"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "8"}}));  // salloc
}

TEST(FindLauncher, ReadsTorchrun) {
  const auto env = found_in(kTorchrun);
  ASSERT_TRUE(env);
  EXPECT_EQ(env->launcher, Launcher::torchrun);
  EXPECT_EQ(env->rank, 5);
  EXPECT_EQ(env->workers, 8);
  EXPECT_EQ(env->local_rank, 1);
  EXPECT_EQ(env->local_workers, 4);
  EXPECT_EQ(env->node, "1");
  EXPECT_EQ(env->address, "10.0.0.1");
  EXPECT_EQ(env->port, 777);
  EXPECT_TRUE(env->has_store);
  EXPECT_EQ(env->job, "run.2");
}

TEST(FindLauncher, TakesRankAndWorldSizeFromAnybody) {
  const auto env = found_in({{"RANK", "0"},
                             {"WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "there"},
                             {"MASTER_PORT", "9"},
                             {"GLOO_SOCKET_IFNAME", "eth1"}});
  ASSERT_TRUE(env);
  EXPECT_EQ(env->local_rank, -1);
  EXPECT_EQ(env->local_workers, 0);
  EXPECT_EQ(env->node, "");
  EXPECT_FALSE(env->has_store);
  EXPECT_EQ(env->interface, "eth1");
}

TEST(FindLauncher, ReadsOpenMpiAndMeetsOnLoopbackOnOneHost) {
  const auto env = found_in(kMpirun);
  ASSERT_TRUE(env);
  EXPECT_EQ(env->launcher, Launcher::mpirun);
  EXPECT_EQ(env->rank, 3);
  EXPECT_EQ(env->workers, 4);
  EXPECT_EQ(env->address, "127.0.0.1");
  EXPECT_GE(env->port, 10'000);
  EXPECT_LT(env->port, 30'000);
  EXPECT_FALSE(env->has_store);
  const auto other = found_in(with(kMpirun, {{"OMPI_MCA_ess_base_jobid", "123457"}}));
  EXPECT_NE(other->port, env->port);
  const auto newer = found_in(
      with(without(kMpirun, "OMPI_MCA_ess_base_jobid"), {{"PMIX_NAMESPACE", "prterun-host-1@1"}}));
  EXPECT_EQ(newer->job, "prterun-host-1@1");
}

TEST(FindLauncher, LetsTheUserSayWhereWorkersOfSeveralHostsMeet) {
  const Variables two_hosts =
      with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  EXPECT_NE(message_for(two_hosts).find("mpirun -x MASTER_ADDR"), std::string::npos);
  const auto env = found_in(with(two_hosts, {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}}));
  ASSERT_TRUE(env);
  EXPECT_EQ(env->address, "node1");
  EXPECT_EQ(env->port, 29500);
}

TEST(FindLauncher, ReadsSlurmAndMeetsAtTheFirstHost) {
  const auto env = found_in(kSrun);
  ASSERT_TRUE(env);
  EXPECT_EQ(env->launcher, Launcher::srun);
  EXPECT_EQ(env->rank, 6);
  EXPECT_EQ(env->workers, 8);
  EXPECT_EQ(env->local_rank, 2);
  EXPECT_EQ(env->node, "1");
  EXPECT_EQ(env->address, "gpu03");
  EXPECT_EQ(env->job, "42.0");
  EXPECT_GE(env->port, 10'000);
  const std::pair<const char*, const char*> lists[] = {
      {"a1,a2", "a1"}, {"a[1,5]-ib", "a1-ib"}, {"solo", "solo"}, {"a[09-11]", "a09"}};
  for (const auto& [list, first] : lists) {
    EXPECT_EQ(found_in(with(kSrun, {{"SLURM_STEP_NODELIST", list}}))->address, first);
  }
  EXPECT_EQ(found_in(with(kSrun, {{"SLURM_STEP_NUM_NODES", "1"}}))->address, "127.0.0.1");
  const Variables by_launch_node =
      with(without(kSrun, "SLURM_STEP_NODELIST"), {{"SLURM_LAUNCH_NODE_IPADDR", "10.1.1.1"}});
  EXPECT_EQ(found_in(by_launch_node)->address, "10.1.1.1");
}

TEST(FindLauncher, TakesASlurmStepOfOneTaskForAPlainShell) {
  EXPECT_FALSE(found_in(with(kSrun, {{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}})));
  EXPECT_FALSE(found_in(with(kSrun, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})));
}

TEST(FindLauncher, RefusesABatchScriptOfSeveralTasks) {
  const Variables script = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}};
  EXPECT_NE(message_for(script).find("srun gossamer train"), std::string::npos);
}

TEST(FindLauncher, NeedsNoNumberOfTasksInABatchScript) {
  const Variables script = {{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}};  // sbatch without -n
  EXPECT_FALSE(found_in(script));
  EXPECT_NE(message_for(with(script, {{"SLURM_STEP_ID", "0"}})).find("SLURM_STEP_NUM_TASKS"),
            std::string::npos);
}

TEST(FindLauncher, AWorkerAloneMeetsNobody) {
  const Variables alone[] = {{{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                             {{"WORLD_SIZE", "1"}},
                             {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}};
  for (const Variables& variables : alone) {
    const auto env = found_in(variables);
    ASSERT_TRUE(env);
    EXPECT_EQ(env->workers, 1);
    EXPECT_EQ(env->address, "127.0.0.1");
    EXPECT_EQ(env->port, 0);
  }
}

/// Rank 1 of two, as each launcher of the table says it.
Variables as_told_by(const LauncherVariables& row) { return {{row.rank, "1"}, {row.workers, "2"}}; }

TEST(FindLauncher, NoLauncherLooksLikeNone) {
  const Variables meeting = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  for (const LauncherVariables& row : launchers()) {
    if (row.workers == nullptr) continue;
    const bool is_slurm = row.launcher == Launcher::srun;
    const Variables told = with(as_told_by(row), {{is_slurm ? "SLURM_STEP_ID" : "NONE", "0"}});
    EXPECT_NE(message_for(told).find("MASTER_ADDR"), std::string::npos) << message_for(told);
    const auto env = found_in(with(told, meeting));
    ASSERT_TRUE(env) << row.workers;
    EXPECT_EQ(env->launcher, row.launcher) << row.workers;
    EXPECT_EQ(env->rank, 1);
    EXPECT_EQ(env->workers, 2);
    EXPECT_EQ(env->workers_from, std::string(row.workers) + "=2");
  }
}

TEST(FindLauncher, JoinsOnOneHostWhatSaysThatItIsOne) {
  const auto flux = found_in({{"FLUX_TASK_RANK", "1"},
                              {"FLUX_JOB_SIZE", "2"},
                              {"FLUX_JOB_NNODES", "1"},
                              {"FLUX_JOB_ID", "f1"},
                              {"PMI_RANK", "1"},  // for its MPI
                              {"PMI_SIZE", "2"}});
  ASSERT_TRUE(flux);
  EXPECT_EQ(flux->launcher, Launcher::flux);
  EXPECT_EQ(flux->address, "127.0.0.1");
  const auto intel = found_in({{"PMI_RANK", "1"},
                               {"PMI_SIZE", "2"},
                               {"MPI_LOCALRANKID", "1"},
                               {"MPI_LOCALNRANKS", "2"},
                               {"MASTER_PORT", "9"}});
  ASSERT_TRUE(intel);
  EXPECT_EQ(intel->local_workers, 2);
  EXPECT_EQ(intel->address, "127.0.0.1");
}

TEST(FindLauncher, RefusesALauncherThatDoesNotSayHowManyThereAre) {
  EXPECT_NE(message_for({{"PMIX_RANK", "0"}}).find("PMIX_RANK=0; set RANK, WORLD_SIZE"),
            std::string::npos);
  EXPECT_FALSE(found_in({{"PMIX_RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
  EXPECT_FALSE(found_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}));
}

TEST(FindLauncher, TakesSrunForItsOwnPmi) {
  const Variables step = with(kSrun, {{"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_EQ(found_in(with(step, {{"PMI_RANK", "6"}, {"PMI_SIZE", "8"}}))->launcher, Launcher::srun);
  const Variables within =
      with(step,
           {{"PMI_RANK", "0"}, {"PMI_SIZE", "16"}, {"MASTER_ADDR", "gpu03"}, {"MASTER_PORT", "9"}});
  EXPECT_EQ(found_in(within)->launcher, Launcher::mpiexec);
}

TEST(FindLauncher, TakesTheInnermostLauncher) {
  EXPECT_EQ(found_in(with(kSrun, kTorchrun))->launcher, Launcher::torchrun);
  EXPECT_EQ(found_in(with(kSrun, kMpirun))->launcher, Launcher::mpirun);
}

TEST(FindLauncher, NamesWhatIsMissing) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string message = message_for(without(kTorchrun, name));
    EXPECT_NE(message.find(std::string("lacks ") + name), std::string::npos) << message;
    EXPECT_NE(message.find("torchrun"), std::string::npos) << message;
  }
  EXPECT_NE(message_for(without(kMpirun, "OMPI_COMM_WORLD_SIZE")).find("OMPI_COMM_WORLD_SIZE"),
            std::string::npos);
  EXPECT_NE(message_for(without(kMpirun, "OMPI_MCA_ess_base_jobid")).find("MASTER_PORT"),
            std::string::npos);
  EXPECT_NE(message_for(without(kSrun, "SLURM_JOB_ID")).find("SLURM_JOB_ID"), std::string::npos);
}

TEST(FindLauncher, NamesWhatContradicts) {
  const std::pair<Variables, const char*> wrong[] = {
      {with(kTorchrun, {{"RANK", "8"}}), "RANK must be a whole number from 0 to 7"},
      {with(kTorchrun, {{"RANK", "-1"}}), "got -1"},
      {with(kTorchrun, {{"WORLD_SIZE", "8x"}}), "got 8x"},
      {with(kTorchrun, {{"LOCAL_RANK", "4"}}), "LOCAL_RANK must be a whole number from 0 to 3"},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE"},
      {with(kTorchrun, {{"MASTER_PORT", "70000"}}), "MASTER_PORT"},
      {with(kMpirun, {{"RANK", "2"}}), "RANK must be 3, as mpirun has it, got 2; unset RANK"},
      {with(kSrun, {{"WORLD_SIZE", "4"}}), "WORLD_SIZE must be 8, as srun has it"}};
  for (const auto& [variables, words] : wrong) {
    const std::string message = message_for(variables);
    EXPECT_NE(message.find(words), std::string::npos) << words << ": " << message;
  }
}

}  // namespace
}  // namespace gossamer
