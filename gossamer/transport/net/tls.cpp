#include "gossamer/transport/net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/transport/net/handshake.h"

namespace gossamer {
namespace {

// A pre-shared key has one hash function; the cipher that belongs to SHA-256 is the fast one.
constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherNumber[] = {0x13, 0x01};
constexpr const char* kGroups = "X25519:P-256";
// Several records per call of the system; more would leave the core's nearest cache.
constexpr std::size_t kReadAhead = std::size_t{64} << 10;
constexpr std::size_t kBytesTogether = std::size_t{128} << 10;

std::string reason_of(unsigned long error) {
  const char* const reason = ::ERR_reason_error_string(error);
  return reason == nullptr ? "no reason is known" : reason;
}

[[noreturn]] void fail_openssl(const std::string& what) {
  const std::string reason = reason_of(::ERR_get_error());
  ::ERR_clear_error();
  fail_io({.place = "net",
           .what = what,
           .got = reason,
           .remedy = "install OpenSSL 3, or leave tls out"});
}

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

const TlsKeys& keys_of(const SSL* tls) {
  return *static_cast<const TlsKeys*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(tls)));
}

/// A session that has never been, which is how OpenSSL wants a key; nothing if it has no memory.
SSL_SESSION* make_session(SSL* tls) {
  const std::span<const std::byte> key = keys_of(tls).key();
  SSL_SESSION* session = ::SSL_SESSION_new();
  const SSL_CIPHER* const cipher = ::SSL_CIPHER_find(tls, kCipherNumber);
  if (session != nullptr && cipher != nullptr &&
      ::SSL_SESSION_set1_master_key(session, raw(key), key.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session, cipher) == 1 &&
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  ::SSL_SESSION_free(session);
  return nullptr;
}

/// For the end that connects.
int choose_key(SSL* tls, const EVP_MD*, const unsigned char** name, std::size_t* size,
               SSL_SESSION** session) {
  *name = raw(keys_of(tls).name());
  *size = keys_of(tls).name().size();
  *session = make_session(tls);
  return *session != nullptr ? 1 : 0;
}

/// For the end that accepts. Another name is that of another job.
int find_key(SSL* tls, const unsigned char* name, std::size_t size, SSL_SESSION** session) {
  const std::span<const std::byte> asked = std::as_bytes(std::span(name, size));
  *session = are_equal(asked, keys_of(tls).name()) ? make_session(tls) : nullptr;
  return 1;
}

bool is_later(int error) {
  return error == EAGAIN || error == ENOTCONN || error == EINPROGRESS || error == EINTR;
}

TlsSocket& socket_of(BIO* bio) { return *static_cast<TlsSocket*>(::BIO_get_data(bio)); }

/// 0 when all is gone; else −1 and errno.
ssize_t flush_socket(TlsSocket& socket) {
  while (socket.gone < socket.unsent.size()) {
    const auto left = std::span<const std::byte>(socket.unsent).subspan(socket.gone);
    const ssize_t sent =
        ::send(socket.descriptor, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return -1;
    socket.gone += static_cast<std::size_t>(sent);
  }
  socket.unsent.clear();
  socket.gone = 0;
  return 0;
}

/// To send a record costs as much as to encrypt it, so several go together.
int write_socket(BIO* bio, const char* data, int size) {
  TlsSocket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  const auto bytes = std::as_bytes(std::span(data, static_cast<std::size_t>(size)));
  const bool fits = socket.unsent.size() + bytes.size() <= kBytesTogether;
  if (!fits && flush_socket(socket) != 0) {
    socket.error = errno;
    if (is_later(errno)) BIO_set_retry_write(bio);
    return -1;
  }
  socket.unsent.insert(socket.unsent.end(), bytes.begin(), bytes.end());
  return size;
}

int read_socket(BIO* bio, char* data, int size) {
  TlsSocket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  const std::size_t most = std::min(static_cast<std::size_t>(size), socket.may_read);
  errno = EAGAIN;
  const ssize_t got = most == 0 ? -1 : ::recv(socket.descriptor, data, most, MSG_DONTWAIT);
  if (got > 0) {
    socket.may_read -= static_cast<std::size_t>(got);
    return static_cast<int>(got);
  }
  socket.error = got == 0 ? 0 : errno;
  if (got < 0 && is_later(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

std::vector<std::byte> bytes_of_key(const std::string& token, std::string_view purpose) {
  const auto key = key_for(token, purpose);
  return {key.begin(), key.end()};
}

}  // namespace

void TlsKeys::Free::operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
void TlsKeys::Free::operator()(BIO_METHOD* method) const { ::BIO_meth_free(method); }
void Tls::Free::operator()(SSL* tls) const { ::SSL_free(tls); }

TlsKeys::TlsKeys(const std::string& token, std::uint64_t bytes_per_key)
    : bytes_per_key_(bytes_per_key),
      key_(bytes_of_key(token, "tls 1.3 key")),
      name_(bytes_of_key(token, "tls 1.3 name")),
      context_(::SSL_CTX_new(::TLS_method())),
      way_(::BIO_meth_new(BIO_TYPE_SOURCE_SINK, "a socket of gossamer")) {
  if (token.empty()) {
    fail_argument({.place = "net",
                   .what = "tls derives its key from the job's token",
                   .got = "an empty one",
                   .remedy = "give all workers the same random token"});
  }
  SSL_CTX* const context = context_.get();
  const bool is_set_up =
      context_ && way_ && ::SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
      ::SSL_CTX_set_ciphersuites(context, kCipher) == 1 &&
      SSL_CTX_set1_groups_list(context, kGroups) == 1 && ::SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!is_set_up) fail_openssl("OpenSSL offers no TLS 1.3 with AES-128-GCM");
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  ::SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
  // No certificate is trusted, so that none can stand for the key; whoever accepts does not ask.
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_psk_use_session_callback(context, &choose_key);
  ::SSL_CTX_set_psk_find_session_callback(context, &find_key);
  ::BIO_meth_set_write(way_.get(), &write_socket);
  ::BIO_meth_set_read(way_.get(), &read_socket);
  ::BIO_meth_set_ctrl(way_.get(), &control_socket);
}

Tls::Tls(std::shared_ptr<const TlsKeys> keys, int socket, End end)
    : keys_(std::move(keys)), socket_{.descriptor = socket}, tls_(::SSL_new(keys_->context())) {
  BIO* const bio = ::BIO_new(keys_->way());
  if (!tls_ || bio == nullptr) {
    ::BIO_free(bio);
    fail_openssl("OpenSSL makes no connection");
  }
  ::BIO_set_data(bio, &socket_);
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(tls_.get(), bio, bio);  // which owns it from now on
  if (end == End::connects) {
    ::SSL_set_connect_state(tls_.get());
    shake();  // up to its first record, which waits for the connection
  } else {
    ::SSL_set_accept_state(tls_.get());
    ::SSL_set_verify(tls_.get(), SSL_VERIFY_NONE, nullptr);
  }
}

/// What a failed call of OpenSSL means, as the system would say it.
ssize_t Tls::outcome(int result) {
  const int what = ::SSL_get_error(tls_.get(), result);
  if (what == SSL_ERROR_ZERO_RETURN) return 0;
  if (what == SSL_ERROR_WANT_WRITE || what == SSL_ERROR_WANT_READ) {
    errno = EAGAIN;
    return -1;
  }
  const unsigned long error = ::ERR_peek_error();
  ::ERR_clear_error();
  if (what == SSL_ERROR_SYSCALL) {
    errno = socket_.error;
    return errno == 0 ? 0 : -1;
  }
  flush();  // with what the other end is told of it
  failure_ = reason_of(error);
  is_corrupt_ = is_ready_ && ERR_GET_REASON(error) < SSL_AD_REASON_OFFSET;  // else it was told so
  errno = EPROTO;
  return -1;
}

/// 1 when the handshake is over.
ssize_t Tls::shake() {
  if (is_ready_) return 1;
  ::ERR_clear_error();
  const int result = ::SSL_do_handshake(tls_.get());
  if (result != 1) return outcome(result);
  is_ready_ = ::SSL_session_reused(tls_.get()) == 1;
  if (is_ready_) return 1;
  failure_ = "the other end does not have the key";
  errno = EPROTO;
  return -1;
}

ssize_t Tls::send(const std::array<iovec, 2>& parts) {
  iovec record = parts[1];
  if (const std::size_t head = parts[0].iov_len; head > 0) {  // one record instead of two
    const std::size_t tail = std::min(parts[1].iov_len, gathered_.size() - head);
    std::memcpy(gathered_.data(), parts[0].iov_base, head);
    if (tail > 0) std::memcpy(gathered_.data() + head, parts[1].iov_base, tail);
    record = {gathered_.data(), head + tail};
  }
  if (sent_ >= keys_->bytes_per_key()) {
    if (::SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) sent_ = 0;
  }
  ::ERR_clear_error();
  std::size_t sent = 0;
  const int result = ::SSL_write_ex(tls_.get(), record.iov_base, record.iov_len, &sent);
  sent_ += sent;
  if (result == 1) return static_cast<ssize_t>(sent);
  if (outcome(result) == 0) errno = EPIPE;
  return -1;
}

ssize_t Tls::flush() { return flush_socket(socket_); }

ssize_t Tls::receive(const std::array<iovec, 2>& parts) {
  const ssize_t begun = shake();
  if (begun != 1) return begun;
  const iovec& part = parts[parts[0].iov_len > 0 ? 0 : 1];
  ::ERR_clear_error();
  std::size_t got = 0;
  const int result = ::SSL_read_ex(tls_.get(), part.iov_base, part.iov_len, &got);
  return result == 1 ? static_cast<ssize_t>(got) : outcome(result);
}

void Tls::finish() {
  if (!is_ready_ || !failure_.empty()) return;
  ::ERR_clear_error();
  ::SSL_shutdown(tls_.get());
  ::ERR_clear_error();
  flush();  // what does not fit into the socket any more is not missed
}

}  // namespace gossamer
