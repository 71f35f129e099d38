// gossamer._test_device
#include <torch/csrc/utils/pybind.h>

#include <map>
#include <mutex>
#include <string>

#include "tests/device/device.h"

using test_device::Counts;
using test_device::queues;
using test_device::take_counts;
using Lock = std::lock_guard<std::recursive_mutex>;

PYBIND11_MODULE(_test_device, module) {
  module.def("install", &test_device::install);
  module.def("seed", [](std::uint64_t seed, int most_looks) {
    const Lock lock(queues().mutex());
    queues().seed(seed);
    queues().set_most_looks(most_looks);
  });
  module.def("leave_out", [](std::int64_t waiter, std::int64_t recorded) {
    const Lock lock(queues().mutex());
    queues().leave_out(waiter, recorded);
  });
  module.def("fail_after", [](std::int64_t calls) {
    const Lock lock(queues().mutex());
    queues().fail_after(calls);
  });
  module.def("sizes", [] {
    const test_device::Sizes sizes = test_device::sizes();
    return std::pair(sizes.device, sizes.pinned);
  });
  module.def("counts", [] {
    const Counts c = take_counts();
    return std::map<std::string, std::int64_t>{{"blocking_copies", c.blocking_copies},
                                               {"late_copies", c.late_copies},
                                               {"bytes_out", c.bytes_out},
                                               {"bytes_in", c.bytes_in},
                                               {"scalar_reads", c.scalar_reads},
                                               {"host_waits", c.host_waits},
                                               {"queries", c.queries}};
  });
}
