#include "gossamer/transport/memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer {
namespace {

TEST(Memory, WhoCopiesDependsOnTheOwnerAndOnWhatIsLent) {
  const Owner none;
  const Owner ordinary = std::make_shared<const std::vector<float>>(4);
  const Owner shared = shared_memory_for(Lends::shared_memory, 16);
  ASSERT_TRUE(shared.shared());
  EXPECT_EQ(copier_of(none, Lends::any_memory), Copier::transport);
  EXPECT_EQ(copier_of(ordinary, Lends::any_memory), Copier::nobody);
  EXPECT_EQ(copier_of(shared, Lends::any_memory), Copier::nobody);
  EXPECT_EQ(copier_of(none, Lends::shared_memory), Copier::sender);
  EXPECT_EQ(copier_of(ordinary, Lends::shared_memory), Copier::sender);
  EXPECT_EQ(copier_of(shared, Lends::shared_memory), Copier::nobody);
  for (const Owner& owner : {none, ordinary, shared}) {
    EXPECT_EQ(copier_of(owner, Lends::nothing), Copier::transport);
  }
}

TEST(Memory, OnlyWhatIsLentFromSharedMemoryNeedsIt) {
  EXPECT_EQ(shared_memory_for(Lends::nothing, 16), nullptr);
  EXPECT_EQ(shared_memory_for(Lends::any_memory, 16), nullptr);
  EXPECT_EQ(shared_memory_for(Lends::shared_memory, 16)->size(), 16U);
}

}  // namespace
}  // namespace gossamer
