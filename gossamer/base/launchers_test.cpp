#include "gossamer/base/launchers.h"

#include <gtest/gtest.h>

#include <map>

namespace gossamer {
namespace {

using Variables = std::map<std::string, std::string>;

std::string said_by(const Variables& variables) {
  const auto together =
      started_together([&](const std::string& name) -> std::optional<std::string> {
        const auto at = variables.find(name);
        if (at == variables.end()) return std::nullopt;
        return at->second;
      });
  return together ? together->says : "";
}

TEST(StartedTogether, IsSaidByEveryLauncher) {
  for (const LauncherVariables& row : launchers()) {
    const bool has_size = row.workers != nullptr;
    const Variables two = {{row.rank, "1"}, {has_size ? row.workers : "NONE", "2"}};
    EXPECT_EQ(said_by(two), has_size ? std::string(row.workers) + "=2" : "PMIX_RANK=1");
    const Variables one = {{row.rank, "0"}, {has_size ? row.workers : "NONE", "1"}};
    EXPECT_EQ(said_by(one), "") << row.rank;
  }
}

TEST(StartedTogether, IsNotSaidByTheSizeOfAnAllocation) {
  EXPECT_EQ(said_by({}), "");
  EXPECT_EQ(said_by({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "8"}}), "");
  EXPECT_EQ(said_by({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "");  // its batch script
  EXPECT_EQ(said_by({{"FLUX_JOB_SIZE", "8"}}), "");
  EXPECT_EQ(said_by({{"PMI_RANK", "0"}, {"PMI_SIZE", "many"}}), "");
}

}  // namespace
}  // namespace gossamer
