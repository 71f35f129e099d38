#include "gossamer/data/byte_corpus.h"

#include <gtest/gtest.h>

#include "gossamer/data/data_fixture.h"

namespace gossamer {
namespace {

TEST_F(DataFiles, ACorpusIsTheFilesOfAFolderInTheOrderOfTheirPaths) {
  write("b.py", {'b'});
  write("a/z.py", {'z', 'z'});
  write("a/note.txt", {'n'});
  write("c.py", {'c'});
  EXPECT_EQ(read_corpus(folder_, {.suffixes = {".py"}}), (Bytes{'z', 'z', 'b', 'c'}));
  EXPECT_EQ(read_corpus(folder_, {.suffixes = {".py"}, .max_bytes = 3}), (Bytes{'z', 'z', 'b'}));
  EXPECT_EQ(read_corpus(folder_, {.suffixes = {".py", ".txt"}}).size(), 5u);
  EXPECT_EQ(read_corpus(folder_, {}).size(), 5u);
  EXPECT_EQ(read_corpus(folder_ / "c.py", {}), Bytes{'c'});
  EXPECT_EQ(read_corpus(write_gz("packed.gz", {'p'}), {}), Bytes{'p'});
  expect_names(io_error([&] { read_corpus(folder_, {.suffixes = {".cc"}}); }), "'.cc'", "no bytes");
  expect_names(io_error([&] { read_corpus(write("empty", {}), {}); }), "empty", "no bytes");
  expect_names(io_error([&] { read_corpus(folder_ / "absent", {}); }), "absent", "not a file");
}

}  // namespace
}  // namespace gossamer
