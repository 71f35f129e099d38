#pragma once
/// Makes the batches of coming steps in threads of their own while the current one is computed.

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <utility>

#include "gossamer/data/sharding.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

/// The batches are those of `make`, which must be pure. May be called from many threads at once.
class ReadAhead {
 public:
  using Make = std::function<Batch(std::int64_t step, Shard shard)>;

  /// `steps`: so many steps ahead, in as many threads per worker; 0: none.
  ReadAhead(Make make, int steps);

  /// Waits for the batch where it is being made, makes it where it is not, and begins with those
  /// after it. Throws what `make` throws, when that step is asked for.
  Batch batch(std::int64_t step, Shard shard);

 private:
  using Coming = std::map<std::int64_t, std::future<Batch>>;  ///< by step

  const Make make_;
  const int steps_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, Coming> coming_;  ///< by worker and workers; guarded by mutex_
};

}  // namespace gossamer
