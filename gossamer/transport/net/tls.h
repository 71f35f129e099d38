#pragma once
/// Tls: TLS 1.3 over a socket that never blocks, between ends that know the same token.

#include <openssl/bio.h>
#include <openssl/types.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gossamer {

/// What the connections of a worker have in common. Immutable.
///
/// Note [A key instead of certificates]: both ends derive a key and a name for it from the job's
/// token (HMAC-SHA256 with a label each). It is TLS 1.3's external pre-shared key, always together
/// with a Diffie-Hellman exchange (psk_dhe_ke): who learns the token later cannot read what was
/// recorded before. An end without the key is refused, and so is one that has a certificate instead
/// of it. The key does not say which worker the other end is: the proofs of handshake.h say that,
/// inside of TLS; by them a connection that is turned back to whoever made it is refused, too.
class TlsKeys {
 public:
  /// Each direction of a connection goes on with a new key after so many bytes; AES-GCM is good for
  /// 2^24.5 records, 380 GB (RFC 8446, 5.5).
  static constexpr std::uint64_t kBytesPerKey = std::uint64_t{64} << 30;

  /// Throws std::invalid_argument for an empty token, IoError where OpenSSL does not do it.
  explicit TlsKeys(const std::string& token, std::uint64_t bytes_per_key = kBytesPerKey);

  SSL_CTX* context() const { return context_.get(); }
  /// How bytes get into a socket and out of it; for a TlsSocket.
  const BIO_METHOD* way() const { return way_.get(); }
  std::uint64_t bytes_per_key() const { return bytes_per_key_; }
  std::span<const std::byte> key() const { return key_; }
  std::span<const std::byte> name() const { return name_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const;
    void operator()(BIO_METHOD* method) const;
  };

  const std::uint64_t bytes_per_key_;
  const std::vector<std::byte> key_;
  const std::vector<std::byte> name_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<BIO_METHOD, Free> way_;
};

struct TlsSocket {
  int descriptor = -1;
  std::size_t may_read = 0;            ///< bytes
  int error = 0;                       ///< errno of the last operation that failed; 0: for the end
  std::vector<std::byte> unsent = {};  ///< records that go together; those before `gone` are gone
  std::size_t gone = 0;
};

/// One connection. Not for several threads at once. Never blocks.
class Tls {
 public:
  enum class End { connects, accepts };
  /// So many bytes may be here of a record that is not complete, at most.
  static constexpr std::size_t kMostHidden = std::size_t{17} << 10;

  /// Over a socket that stays open as long as this lives; it may still be connecting.
  Tls(std::shared_ptr<const TlsKeys> keys, int socket, End end);

  /// The handshake is over: both ends know the token.
  bool is_ready() const { return is_ready_; }
  /// Something waits for flush(), or for room in the socket.
  bool is_behind() const { return !socket_.unsent.empty(); }
  /// Why nothing more comes or goes, in OpenSSL's words; empty unless errno was EPROTO.
  const std::string& failure() const { return failure_; }
  /// Something else arrived than was sent.
  bool is_corrupt() const { return is_corrupt_; }

  /// Once it is ready, like sendmsg() with these parts: takes at most a record of them; −1 and
  /// errno. What has not been taken has to be offered again. Goes with the next flush().
  ssize_t send(const std::array<iovec, 2>& parts);
  /// Like recvmsg(): at most what is left of a record; 0 at the end; −1 and errno. Takes at most
  /// `may_read` bytes from the socket until the next allow(). Until it says EAGAIN, there may be
  /// bytes here that the system does not tell of any more.
  ssize_t receive(const std::array<iovec, 2>& parts);
  /// Gives the socket what waits for it; −1 and errno where it does not take all.
  ssize_t flush();
  void allow(std::size_t may_read) { socket_.may_read = may_read; }
  /// Tells the other end that no more will be sent.
  void finish();

 private:
  struct Free {
    void operator()(SSL* tls) const;
  };

  static constexpr std::size_t kRecordBytes = std::size_t{16} << 10;

  ssize_t shake();
  ssize_t outcome(int result);

  const std::shared_ptr<const TlsKeys> keys_;
  TlsSocket socket_;
  std::unique_ptr<SSL, Free> tls_;
  bool is_ready_ = false;
  bool is_corrupt_ = false;
  std::string failure_;
  std::uint64_t sent_ = 0;                        ///< bytes, with the present key
  std::array<std::byte, kRecordBytes> gathered_;  ///< of two parts
};

}  // namespace gossamer
