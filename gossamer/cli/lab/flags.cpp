#include "gossamer/cli/lab/flags.h"

#include <algorithm>
#include <thread>

namespace gossamer {

void add_threads_and_seed(CLI::App& app, int& threads, std::uint64_t& seed) {
  threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  app.add_option("--threads", threads, "for trials (default: as many as cores)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seed", seed, "of the samples drawn")->capture_default_str();
}

}  // namespace gossamer
