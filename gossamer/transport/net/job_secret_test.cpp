#include "gossamer/transport/net/job_secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::optional<std::string> secret_with(const Variables& variables) {
  return secret_of_user(environment_of(variables));
}

/// A file of this mode, until it goes.
class File {
 public:
  File(const std::string& text, mode_t mode) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
  }
  ~File() { ::unlink(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "secret-" + std::to_string(::getpid());
};

std::string complaint_of(const File& file) {
  try {
    secret_with({{"GOSSAMER_SECRET_FILE", file.path()}});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(JobSecret, ComesFromTheEnvironmentOrAFile) {
  EXPECT_EQ(secret_with({}), std::nullopt);
  EXPECT_EQ(secret_with({{"GOSSAMER_SECRET", " 0123456789abcdef\n"}}), "0123456789abcdef");
  const File file("fedcba9876543210\n", 0600);
  EXPECT_EQ(secret_with({{"GOSSAMER_SECRET_FILE", file.path()}}), "fedcba9876543210");
}

TEST(JobSecret, ComplainsOfWhatIsNone) {
  EXPECT_THROW(secret_with({{"GOSSAMER_SECRET", "short"}}), std::invalid_argument);
  EXPECT_THROW(secret_with({{"GOSSAMER_SECRET", ""}}), std::invalid_argument);
  EXPECT_THROW(secret_with({{"GOSSAMER_SECRET_FILE", "/nowhere"}}), IoError);
  EXPECT_THROW(secret_with({{"GOSSAMER_SECRET_FILE", "/dev/zero"}}), std::invalid_argument);
  for (const mode_t mode : {0644U, 0604U, 0660U, 0610U}) {
    const File file("fedcba9876543210", mode);
    EXPECT_NE(complaint_of(file).find("only its owner and its group can read"), std::string::npos)
        << complaint_of(file);
    EXPECT_NE(complaint_of(file).find("with mode 06"), std::string::npos) << complaint_of(file);
  }
  const File file("fedcba9876543210", 0600);
  EXPECT_THROW(
      secret_with({{"GOSSAMER_SECRET_FILE", file.path()}, {"GOSSAMER_SECRET", "0123456789abcdef"}}),
      std::invalid_argument);
}

TEST(JobSecret, MayBeReadByTheGroupOfItsFileAsKubernetesMounts) {
  for (const mode_t mode : {0400U, 0440U, 0640U}) {
    const File file("fedcba9876543210", mode);
    EXPECT_EQ(secret_with({{"GOSSAMER_SECRET_FILE", file.path()}}), "fedcba9876543210");
  }
}

TEST(JobSecret, OfAnotherUserIsRefusedByTheOwner) {
  const File file("fedcba9876543210", 0400);
  if (::chown(file.path().c_str(), 4242, static_cast<gid_t>(-1)) != 0) GTEST_SKIP() << "no root";
  EXPECT_NE(complaint_of(file).find("must be a file of this user, 0, or of root"),
            std::string::npos)
      << complaint_of(file);
  EXPECT_NE(complaint_of(file).find("of user 4242"), std::string::npos) << complaint_of(file);
}

TEST(JobSecret, WhoeverHasOneAuthenticatesUnlessToldOtherwise) {
  const auto wants = [](const Variables& variables) {
    return wants_authentication(environment_of(variables));
  };
  EXPECT_FALSE(wants({}));
  EXPECT_TRUE(wants({{"GOSSAMER_SECRET", "0123456789abcdef"}}));
  EXPECT_TRUE(wants({{"GOSSAMER_AUTHENTICATE", "1"}}));
  EXPECT_FALSE(wants({{"GOSSAMER_SECRET", "0123456789abcdef"}, {"GOSSAMER_AUTHENTICATE", "0"}}));
  EXPECT_THROW(wants({{"GOSSAMER_AUTHENTICATE", "yes"}}), std::invalid_argument);
}

TEST(JobSecret, GivesEachJobAnotherToken) {
  const std::string token = token_of("0123456789abcdef", "one");
  EXPECT_EQ(token, token_of("0123456789abcdef", "one"));
  EXPECT_NE(token, token_of("0123456789abcdef", "two"));
  EXPECT_NE(token, token_of("0123456789abcdeg", "one"));
  EXPECT_EQ(token.size(), 64U);
  EXPECT_NE(random_digits(), random_digits());
}

TEST(JobSecret, WhatIsSealedIsReadByTheJobAndByNobodyElse) {
  const std::string words = "10.0.0.1 4242";
  const std::string text = sealed("token", 3, words);
  EXPECT_EQ(opened("token", 3, text, "net"), words);
  EXPECT_EQ(opened("token", 0, sealed("token", 0, ""), "net"), "");
  EXPECT_EQ(text.find("4242"), std::string::npos);
  EXPECT_NE(text, sealed("token", 3, words));
  EXPECT_THROW(opened("tokem", 3, text, "net"), std::invalid_argument);
  EXPECT_THROW(opened("token", 2, text, "net"), std::invalid_argument);  // of another rank
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_THROW(opened("token", 3, changed, "net"), std::invalid_argument) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, text.size() - 2}) {
    EXPECT_THROW(opened("token", 3, text.substr(0, size), "net"), std::invalid_argument);
  }
}

}  // namespace
}  // namespace gossamer
