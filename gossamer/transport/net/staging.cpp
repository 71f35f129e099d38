#include "gossamer/transport/net/staging.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "gossamer/kernels/copy.h"
#include "gossamer/transport/net/frame.h"

namespace gossamer {
namespace {

// Many blocks share a memory, for each costs a descriptor here and a mapping at every peer.
constexpr std::size_t kMemoryBytes = std::size_t{32} << 20;
constexpr std::size_t kSmallestBlock = std::size_t{32} << 10;

struct Block {
  std::shared_ptr<const SharedMemory> memory;
  std::byte* data = nullptr;
};

}  // namespace

struct Staging::Pool {
  std::mutex mutex;  // guards all below
  std::map<std::size_t, std::vector<Block>> free;

  void add(std::size_t block_bytes) {
    const auto memory = std::make_shared<const SharedMemory>(std::max(kMemoryBytes, block_bytes));
    for (std::size_t at = 0; at + block_bytes <= memory->size(); at += block_bytes) {
      free[block_bytes].push_back({memory, memory->data() + at});
    }
    std::ranges::reverse(free[block_bytes]);  // the first ones are used first
  }
};

Staging::Staging() : pool_(std::make_shared<Pool>()) {}

StagedBlock Staging::take(std::size_t bytes) {
  const std::size_t size = std::max(std::bit_ceil(bytes), kSmallestBlock);
  Block block;
  {
    const std::lock_guard lock(pool_->mutex);
    auto& free = pool_->free[size];
    if (free.empty()) pool_->add(size);
    block = free.back();
    free.pop_back();
  }
  const auto put_back = [pool = pool_, block, size](const void*) {
    const std::lock_guard lock(pool->mutex);
    pool->free[size].push_back(block);
  };
  return {block.memory, block.data, std::shared_ptr<const void>(block.data, put_back)};
}

NetPayload place(Staging& staging, std::span<const std::byte> payload, const Owner& owner) {
  if (owner.shared() && owner.shared()->contains(payload.data(), payload.size())) {
    return {payload, owner.shared(), owner.shared()};
  }
  if (payload.size() <= kInlineBytes) return {payload};
  const StagedBlock block = staging.take(payload.size());
  copy_streaming(block.data, payload.data(), payload.size());
  return {{block.data, payload.size()}, block.memory, block.keeps};
}

}  // namespace gossamer
