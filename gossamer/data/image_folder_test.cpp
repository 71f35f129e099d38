#include "gossamer/data/image_folder.h"

#include <gtest/gtest.h>

#include "gossamer/data/data_fixture.h"
#include "gossamer/data/image_fixture.h"
#include "gossamer/data/load_image.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

class ClassFolders : public DataFiles {
 protected:
  /// A grey image of one value.
  void put(const std::string& name, std::uint8_t grey, ImageSize size = {2, 2}) const {
    write(name, png_bytes(size, Bytes(static_cast<std::size_t>(size.pixels()), grey),
                          {.kind = PngKind::grey}));
  }
  ImageSet read(const std::string& part = "") const {
    return read_images(find_images(folder_, part));
  }
};

TEST_F(ClassFolders, ClassesAndImagesAreInTheOrderOfTheirNames) {
  put("dog/b.PNG", 1);
  put("dog/a.jpeg", 2);
  put("dog/B.png", 3);
  put("Zebra/1.jpg", 4);
  put("cat/10.png", 5);
  put("cat/9.png", 6);
  put("cat/.hidden.png", 7);
  put(".hidden/1.png", 8);
  write("cat/notes.txt", {'x'});
  write("labels.csv", {'x'});
  ImageSet set = read();
  EXPECT_EQ(set.names, (std::vector<std::string>{"Zebra/1.jpg", "cat/10.png", "cat/9.png",
                                                 "dog/B.png", "dog/a.jpeg", "dog/b.PNG"}));
  EXPECT_EQ(set.labels, (std::vector<std::int32_t>{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(set.classes, 3);
  EXPECT_EQ(set.count, 6);
  set_image_size(set, 0);
  EXPECT_EQ(set.channels, 1);
  EXPECT_EQ(set.size(), (ImageSize{2, 2}));
  ImageBuffers buffers;
  EXPECT_EQ(load_image(set, 4, buffers).pixels[0], 2);
  set_image_size(set, 5);
  const ImageView image = load_image(set, 4, buffers);
  EXPECT_EQ(image.size, (ImageSize{5, 5}));
  EXPECT_EQ(image.pixels[24], 2);
}

TEST_F(ClassFolders, PartsHaveClassesOfTheirOwn) {
  put("val/cat/1.png", 1);
  put("train/cat/1.png", 2);
  put("train/dog/1.png", 3);
  put("test/cat/1.png", 4);
  write("docs/text/readme.txt", {'x'});
  EXPECT_EQ(read().classes, 2);
  EXPECT_EQ(read("val").classes, 1);
  EXPECT_EQ(read("test").folder.filename(), "test");
  expect_names(io_error([&] { read("valid"); }), "'valid'", "parts test, train, val");
  fs::remove_all(folder_ / "train");
  EXPECT_EQ(read().folder.filename(), "test");
}

TEST_F(ClassFolders, AClassWithoutImagesAndASecondFormatAreRefused) {
  put("cat/1.png", 1);
  write("dog/notes.txt", {'x'});
  expect_names(io_error([&] { read(); }), "dog'", "must hold the images of a class");
  expect_names(io_error([&] { read("val"); }), "'val'", "parts train");
  write("train-images-idx3-ubyte", {});
  expect_names(io_error([&] { read(); }), "several", "IDX, class folders");
}

TEST_F(ClassFolders, OneColourImageMakesThreeChannelsOfAll) {
  put("cat/1.png", 10);
  write("dog/1.png", png_bytes({2, 2}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
  ImageSet set = read();
  set_image_size(set, 0);
  EXPECT_EQ(set.channels, 3);
  ImageBuffers buffers;
  EXPECT_EQ(load_image(set, 0, buffers).channels, 3);
  EXPECT_EQ(load_image(set, 0, buffers).pixels[8], 10);
  EXPECT_EQ(load_image(set, 1, buffers).pixels[8], 3);
}

TEST_F(ClassFolders, ImagesOfSeveralSizesNeedOne) {
  put("cat/1.png", 1);
  put("dog/1.png", 2, {3, 4});
  ImageSet set = read();
  const std::string message = io_error([&] { set_image_size(set, 0); });
  expect_names(message, "cat/1.png", "2 x 2");
  expect_names(message, "dog/1.png", "4 x 3");
  expect_names(message, "image_size", "--image-size");
  EXPECT_NO_THROW(set_image_size(set, 2));
  EXPECT_THROW(set_image_size(set, -1), std::invalid_argument);
  EXPECT_THROW(set_image_size(set, kMostImageSize + 1), std::invalid_argument);
}

TEST_F(ClassFolders, TheContentIsNamesAndLengthsWhereverTheyLie) {
  put("a/cat/1.png", 1);
  put("b/cat/1.png", 1);
  const auto content = [&](const std::string& folder) {
    return content_of(read_images(find_images(folder_ / folder)));
  };
  const std::string before = content("a");
  EXPECT_EQ(content("b"), before);
  const auto bytes = fs::file_size(folder_ / "a/cat/1.png");
  EXPECT_EQ(before.find(std::to_string(bytes) + " bytes, crc32"), 0u) << before;
  fs::rename(folder_ / "b/cat/1.png", folder_ / "b/cat/2.png");
  EXPECT_NE(content("b"), before);
  put("a/cat/1.png", 1, {20, 20});
  EXPECT_NE(content("a"), before);
}

TEST_F(DataFiles, ContentsOfImagesInMemoryStayAsCheckpointsHaveThem) {
  write("train-images-idx3-ubyte", idx_bytes({3, 1, 2}, 6));
  write("train-labels-idx1-ubyte", idx_bytes({3}, 3));
  ImageSet set = read_images(find_images(folder_));
  // The CRC-32 of the bytes 0, 1, 2, 3, 4, 5 and 0, 1, 2, by Python's zlib.
  EXPECT_EQ(content_of(set), "9 bytes, crc32 0ee37128");
  set_image_size(set, 4);
  EXPECT_EQ(set.pixels.size(), 3u * 16);
  EXPECT_EQ(set.size(), (ImageSize{4, 4}));
}

}  // namespace
}  // namespace gossamer
