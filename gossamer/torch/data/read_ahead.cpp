#include "gossamer/torch/data/read_ahead.h"

#include <vector>

namespace gossamer {

ReadAhead::ReadAhead(Make make, int steps) : make_(std::move(make)), steps_(steps) {}

Batch ReadAhead::batch(std::int64_t step, Shard shard) {
  std::future<Batch> wanted;
  std::vector<std::future<Batch>> unwanted;  // whose threads are waited for without the mutex
  {
    const std::lock_guard lock(mutex_);
    Coming& coming = coming_[{shard.worker, shard.workers}];
    for (auto next = coming.begin(); next != coming.end();) {
      const bool is_ahead = next->first > step && next->first <= step + steps_;
      if (is_ahead) {
        ++next;
        continue;
      }
      if (next->first == step) {
        wanted = std::move(next->second);
      } else {
        unwanted.push_back(std::move(next->second));
      }
      next = coming.erase(next);
    }
    for (std::int64_t next = step + 1; next <= step + steps_; ++next) {
      if (coming.contains(next)) continue;
      coming.emplace(next, std::async(std::launch::async, make_, next, shard));
    }
  }
  return wanted.valid() ? wanted.get() : make_(step, shard);
}

}  // namespace gossamer
