#include "gossamer/transport/net/job_secret.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/base/descriptor.h"
#include "gossamer/base/errors.h"
#include "gossamer/transport/net/handshake.h"

namespace gossamer {
namespace {

constexpr const char* kFile = "GOSSAMER_SECRET_FILE";
constexpr const char* kWords = "GOSSAMER_SECRET";
constexpr const char* kAuthenticate = "GOSSAMER_AUTHENTICATE";
constexpr std::size_t kFewestBytes = 16;
constexpr std::size_t kMostBytes = 4096;
constexpr std::size_t kEntryNonceBytes = 12;
constexpr std::size_t kCodeBytes = 16;

using Bytes = std::vector<unsigned char>;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

/// Its owner is this user or root, and others than owner and group cannot read it: so are the files
/// of a Kubernetes Secret with defaultMode 0440 and fsGroup. Nobody but the owner may change it.
void check_is_private(const std::string& path, const struct stat& found) {
  const auto refuse = [&](const std::string& what, const std::string& got,
                          const std::string& remedy) {
    fail_argument({.place = kFile, .what = what, .got = path + got, .remedy = remedy});
  };
  if (!S_ISREG(found.st_mode)) {
    refuse("must be a regular file", "", "write the secret into one with mode 0600");
  }
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    refuse("must be a file of this user, " + std::to_string(::geteuid()) + ", or of root",
           " of user " + std::to_string(found.st_uid), "chown the file");
  }
  if ((found.st_mode & 037U) != 0) {
    std::array<char, 8> mode = {};
    std::snprintf(mode.data(), mode.size(), "%04o", found.st_mode & 07777U);
    refuse("must be a file that only its owner and its group can read, and only its owner change",
           std::string(" with mode ") + mode.data(),
           "chmod 600, or 0440 as defaultMode of a Kubernetes Secret");
  }
}

std::string read_secret(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0) {
    fail_io({.place = kFile, .what = "the file cannot be read", .got = std::strerror(errno)});
  }
  check_is_private(path, found);
  std::string text(kMostBytes, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) {
    fail_io({.place = kFile, .what = "the file cannot be read", .got = std::strerror(errno)});
  }
  text.resize(static_cast<std::size_t>(got));
  return text;
}

std::string digits_of(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string digits_of(std::span<const std::byte> bytes) {
  return digits_of({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

/// Empty for what is no digits.
Bytes bytes_of_digits(std::string_view text) {
  const auto value = [](char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
  };
  Bytes bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const int high = value(text[at]);
    const int low = value(text[at + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<unsigned char>(16 * high + low));
  }
  return text.size() % 2 == 0 ? bytes : Bytes();
}

void check_cipher(int result) {
  if (result != 1) fail_io({.place = "net", .what = "AES-GCM cannot be computed"});
}

/// The key of the workers' entries in the store; the rank is authenticated with each.
Context context_for(const std::string& token, int rank, const unsigned char* nonce, int encrypts) {
  Context context(EVP_CIPHER_CTX_new());
  const auto key = key_for(token, "cards");
  check_cipher(EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                 reinterpret_cast<const unsigned char*>(key.data()), nonce,
                                 encrypts));
  const std::string who = std::to_string(rank);
  int length = 0;
  check_cipher(EVP_CipherUpdate(context.get(), nullptr, &length,
                                reinterpret_cast<const unsigned char*>(who.data()),
                                static_cast<int>(who.size())));
  return context;
}

}  // namespace

std::optional<std::string> secret_of_user(const Environment& environment) {
  const std::optional<std::string> path = environment(kFile);
  const std::optional<std::string> words = environment(kWords);
  if (!path && !words) return std::nullopt;
  if (path && words) {
    fail_argument({.place = kFile,
                   .what = "and GOSSAMER_SECRET are both set",
                   .remedy = "unset one of them"});
  }
  const std::string secret = trimmed(path ? read_secret(*path) : *words);
  if (secret.size() >= kFewestBytes) return secret;
  fail_argument({.place = path ? kFile : kWords,
                 .what = "a secret needs " + std::to_string(kFewestBytes) + " bytes or more",
                 .got = std::to_string(secret.size()),
                 .remedy = "make one with `openssl rand -hex 32`"});
}

bool wants_authentication(const Environment& environment) {
  const auto word = environment(kAuthenticate);
  if (!word) return environment(kFile).has_value() || environment(kWords).has_value();
  if (word == "0" || word == "1") return word == "1";
  fail_argument({.place = kAuthenticate,
                 .what = "must be 1 or 0",
                 .got = "'" + *word + "'",
                 .remedy = "1 authenticates what is sent between hosts, 0 does not"});
}

std::string token_of(const std::string& secret, const std::string& nonce) {
  return digits_of(key_for(secret, "token of job " + nonce));
}

std::string random_digits() { return digits_of(random_nonce()); }

std::string sealed(const std::string& token, int rank, const std::string& words) {
  const Nonce random = random_nonce();
  Bytes all(kEntryNonceBytes + words.size() + kCodeBytes);
  std::memcpy(all.data(), random.data(), kEntryNonceBytes);
  const Context context = context_for(token, rank, all.data(), 1);
  int length = 0;
  check_cipher(EVP_CipherUpdate(context.get(), all.data() + kEntryNonceBytes, &length,
                                reinterpret_cast<const unsigned char*>(words.data()),
                                static_cast<int>(words.size())));
  check_cipher(EVP_CipherFinal_ex(context.get(), all.data() + kEntryNonceBytes + length, &length));
  check_cipher(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kCodeBytes,
                                   all.data() + kEntryNonceBytes + words.size()));
  return digits_of(all);
}

std::string opened(const std::string& token, int rank, const std::string& words,
                   std::string_view place) {
  Bytes all = bytes_of_digits(words);
  bool is_right = all.size() >= kEntryNonceBytes + kCodeBytes;
  std::string text;
  if (is_right) {
    const Context context = context_for(token, rank, all.data(), 0);
    text.resize(all.size() - kEntryNonceBytes - kCodeBytes);
    int length = 0;
    check_cipher(EVP_CipherUpdate(context.get(), reinterpret_cast<unsigned char*>(text.data()),
                                  &length, all.data() + kEntryNonceBytes,
                                  static_cast<int>(text.size())));
    check_cipher(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kCodeBytes,
                                     all.data() + kEntryNonceBytes + text.size()));
    std::array<unsigned char, kCodeBytes> rest = {};
    is_right = EVP_CipherFinal_ex(context.get(), rest.data(), &length) == 1;
  }
  if (is_right) return text;
  fail_argument({.place = std::string(place),
                 .what = "what the store says of rank " + std::to_string(rank) +
                         " was not written by a worker of this job",
                 .remedy = "give all ranks the same GOSSAMER_SECRET_FILE or GOSSAMER_SECRET"});
}

}  // namespace gossamer
