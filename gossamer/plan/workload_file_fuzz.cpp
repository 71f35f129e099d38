// workload.toml.

#include "gossamer/base/fuzz.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {

bool fuzz_workload(std::span<const std::byte> bytes) {
  return takes([&] {
    const WorkloadFile file = parse_workload(FuzzBytes(bytes).text(), "w.toml");
    const std::string again = to_toml(file);
    fuzz_check(to_toml(parse_workload(again, "again")) == again, "another file after reading");
    check_workload(file.workload, 1);
  });
}

}  // namespace gossamer
