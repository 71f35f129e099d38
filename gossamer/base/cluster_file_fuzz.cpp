// cluster.toml.

#include "gossamer/base/cluster_file.h"
#include "gossamer/base/fuzz.h"

namespace gossamer {

bool fuzz_cluster(std::span<const std::byte> bytes) {
  return takes([&] {
    const ClusterFile file = parse_cluster(FuzzBytes(bytes).text(), "c.toml");
    check_cluster(file.cluster);
    fuzz_check(file.speeds.size() == static_cast<std::size_t>(file.cluster.shape().workers()),
               "a speed for each worker");
    const std::string again = to_toml(file);
    fuzz_check(to_toml(parse_cluster(again, "again")) == again, "another file after reading");
  });
}

}  // namespace gossamer
