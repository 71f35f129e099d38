#include "gossamer/base/descriptor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gossamer {
namespace {

constexpr std::size_t kBits = 64;
constexpr rlim_t kMostWanted = 65'536;
constexpr std::size_t kMostTracked = std::size_t{1} << 20;  // the most that Linux usually allows

/// A bit for each descriptor that has an owner in this process. See Note [Forks]: a child may only
/// do what takes no lock, for the thread that held it is not there.
std::array<std::atomic<std::uint64_t>, kMostTracked / kBits> owned = {};

bool is_tracked(int number) { return static_cast<std::size_t>(number) < kMostTracked; }

std::uint64_t bit_of(int number) {
  return std::uint64_t{1} << (static_cast<std::size_t>(number) % kBits);
}

std::atomic<std::uint64_t>& bits_of(int number) {
  return owned[static_cast<std::size_t>(number) / kBits];
}

void close_all_in_child() {
  for (std::size_t at = 0; at < owned.size(); ++at) {
    if (owned[at].load(std::memory_order_relaxed) == 0) continue;
    for (std::uint64_t bits = owned[at].exchange(0); bits != 0; bits &= bits - 1) {
      ::close(static_cast<int>(at * kBits) + std::countr_zero(bits));
    }
  }
}

}  // namespace

Descriptor::Descriptor(int number) : number_(number) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_all_in_child);
  static_cast<void>(registered);
  if (number >= 0 && is_tracked(number)) bits_of(number).fetch_or(bit_of(number));
}

void Descriptor::reset() {
  const int number = std::exchange(number_, -1);
  if (number < 0) return;
  const bool is_ours =
      !is_tracked(number) || (bits_of(number).fetch_and(~bit_of(number)) & bit_of(number)) != 0;
  if (is_ours) ::close(number);
}

void allow_many_descriptors() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, kMostWanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace gossamer
