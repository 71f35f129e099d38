#include "gossamer/base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

Descriptor copy_of(int descriptor) { return Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

TEST(SharedMemory, IsZeroAndSeenThroughAMapping) {
  SharedMemory memory(10'000);
  const std::span<std::byte> bytes{memory.data(), memory.size()};
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
  const SharedMapping mapping(copy_of(memory.descriptor()), 10'000);
  memory.data()[9'999] = std::byte{7};
  EXPECT_EQ(mapping.data()[9'999], std::byte{7});
}

TEST(SharedMemory, OutlivesTheOneThatMadeIt) {
  auto memory = std::make_unique<SharedMemory>(4096);
  memory->data()[1] = std::byte{3};
  const SharedMapping mapping(copy_of(memory->descriptor()), 4096);
  memory.reset();
  EXPECT_EQ(mapping.data()[1], std::byte{3});
}

TEST(SharedMemory, KnowsWhatItContains) {
  const SharedMemory memory(100);
  EXPECT_TRUE(memory.contains(memory.data(), 100));
  EXPECT_TRUE(memory.contains(memory.data() + 100, 0));
  EXPECT_FALSE(memory.contains(memory.data() + 1, 100));
  EXPECT_FALSE(memory.contains(&memory, 1));
}

TEST(SharedMemory, CannotShrinkUnderItsReaders) {
  const SharedMemory memory(8192);
  EXPECT_NE(::ftruncate(memory.descriptor(), 0), 0);
}

TEST(SharedMapping, RefusesWhatCouldShrinkOrIsTooSmall) {
  Descriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THROW(SharedMapping(std::move(unsealed), 4096), IoError);
  const SharedMemory memory(4096);
  EXPECT_THROW(SharedMapping(copy_of(memory.descriptor()), 4097), IoError);
  EXPECT_THROW(SharedMapping(copy_of(memory.descriptor()), 0), IoError);
  EXPECT_THROW(SharedMapping(Descriptor(), 1), IoError);
}

}  // namespace
}  // namespace gossamer
