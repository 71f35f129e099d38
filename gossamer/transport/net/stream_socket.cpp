#include "gossamer/transport/net/stream_socket.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kStream = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
// What is not acknowledged for so long ends the connection. Silence is noticed long before, see
// NetOptions; but who waits for the network goes on with what is under way.
constexpr unsigned kUserTimeoutMs = 900'000;
// Note [Sent again soon]: what was not acknowledged is sent again after ever longer waits, up to
// two minutes. A network that was away for long is back at once for others, and for us only after
// such a wait. So it never waits longer than this, where the system can be told (Linux 6.15 and
// later).
constexpr int kLongestWaitMs = 2'000;
constexpr int kTcpRtoMaxMs = 44;  // TCP_RTO_MAX_MS, which older headers lack
// On one machine and inside a rack; 640 KiB under way (the system takes twice what it is told) are
// 3 GB/s there, and stay in a core's cache.
constexpr unsigned kShortWayUs = 200;
constexpr int kShortWayBytes = 320 << 10;
// TCP's own.
constexpr std::size_t kNoLimit = std::size_t{1} << 30;

struct Name {
  sockaddr_storage value = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&value); }
};

/// length 0: not an address, or that of all interfaces.
Name name_of(const StreamAddress& address) {
  Name name;
  auto* four = reinterpret_cast<sockaddr_in*>(&name.value);
  auto* six = reinterpret_cast<sockaddr_in6*>(&name.value);
  const auto port = htons(static_cast<std::uint16_t>(address.port));
  if (::inet_pton(AF_INET, address.host.c_str(), &four->sin_addr) == 1) {
    if (four->sin_addr.s_addr == INADDR_ANY) return {};
    four->sin_family = AF_INET;
    four->sin_port = port;
    name.length = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, address.host.c_str(), &six->sin6_addr) == 1) {
    if (IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr)) return {};
    six->sin6_family = AF_INET6;
    six->sin6_port = port;
    name.length = sizeof(sockaddr_in6);
  }
  return name;
}

int port_of(int socket) {
  Name name;
  name.length = sizeof(name.value);
  if (::getsockname(socket, name.get(), &name.length) != 0) return 0;
  return name.value.ss_family == AF_INET
             ? ntohs(reinterpret_cast<const sockaddr_in*>(&name.value)->sin_port)
             : ntohs(reinterpret_cast<const sockaddr_in6*>(&name.value)->sin6_port);
}

void set_up(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof(kUserTimeoutMs));
  ::setsockopt(socket, IPPROTO_TCP, kTcpRtoMaxMs, &kLongestWaitMs, sizeof(kLongestWaitMs));
}

[[noreturn]] void fail_ports(const std::string& words) {
  fail_argument({.place = "GOSSAMER_PORTS",
                 .what = "must be a range of ports",
                 .got = "'" + words + "'",
                 .remedy = "give the first and the last, as in 40000-40100"});
}

int port_in(std::string_view text, const std::string& words) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65'535) {
    fail_ports(words);
  }
  return port;
}

/// Whether it is bound to a free port of the range. Workers of a host begin at different ones.
bool bind_in(int socket, Name& name, const PortRange& ports) {
  const int count = ports.last - ports.first + 1;
  const int start = static_cast<int>(::getpid() % count);
  for (int i = 0; i < count; ++i) {
    const auto port = static_cast<std::uint16_t>(ports.first + (start + i) % count);
    reinterpret_cast<sockaddr_in*>(name.get())->sin_port = htons(port);  // at the same place in six
    if (::bind(socket, name.get(), name.length) == 0) return true;
    if (errno != EADDRINUSE && errno != EACCES) return false;
  }
  return false;
}

}  // namespace

PortRange ports_of_user(const char* words) {
  if (words == nullptr) return {};
  const std::string text(words);
  const std::size_t dash = text.find('-');
  const std::string_view view(text);
  const int first = port_in(view.substr(0, dash), text);
  const int last = dash == std::string::npos ? first : port_in(view.substr(dash + 1), text);
  if (last < first) fail_ports(text);
  return {first, last};
}

StreamListener listen_for_streams(const std::string& host, const PortRange& ports) {
  Name name = name_of({host, 0});
  if (name.length == 0) {
    fail_argument({.place = "net",
                   .what = "the address to listen on must be one of an interface, in numbers",
                   .got = "'" + host + "'",
                   .remedy = "give the address of the interface that reaches the other hosts"});
  }
  Descriptor socket(::socket(name.value.ss_family, kStream, 0));
  if (!socket || !bind_in(socket.get(), name, ports) || ::listen(socket.get(), SOMAXCONN) != 0) {
    const bool are_taken = errno == EADDRINUSE && ports.first > 0;
    fail_io({.place = "net",
             .what = "cannot listen on " + host,
             .got = std::strerror(errno),
             .remedy = are_taken ? "give GOSSAMER_PORTS a range with a free port for each worker"
                                 : "give the address of an interface of this host"});
  }
  const int port = port_of(socket.get());
  return {std::move(socket), {host, port}};
}

Descriptor connect_stream(const StreamAddress& address) {
  const Name name = name_of(address);
  if (name.length == 0) return Descriptor();
  Descriptor socket(::socket(name.value.ss_family, kStream, 0));
  if (!socket) return socket;
  set_up(socket.get());
  if (::connect(socket.get(), name.get(), name.length) != 0 && errno != EINPROGRESS) {
    return Descriptor();
  }
  return socket;
}

Descriptor accept_stream(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) set_up(socket.get());
  return socket;
}

std::string host_of_peer(int socket) {
  Name name;
  name.length = sizeof(name.value);
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (::getpeername(socket, name.get(), &name.length) != 0) return "";
  const bool is_four = name.value.ss_family == AF_INET;
  const void* address =
      is_four ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&name.value)->sin_addr)
              : &reinterpret_cast<sockaddr_in6*>(&name.value)->sin6_addr;
  const char* done = ::inet_ntop(name.value.ss_family, address, text.data(), text.size());
  return done == nullptr ? "" : done;
}

bool fit_buffer(int socket) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  if (info.tcpi_min_rtt > kShortWayUs) return false;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kShortWayBytes, sizeof(kShortWayBytes));
  return true;
}

Way way_of(int socket) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  return {std::chrono::microseconds(info.tcpi_min_rtt), info.tcpi_advmss};
}

// Recent kernels (6.18 does) forget the window that they were told once packets of other sizes
// come. Then the buffer is what limits, in which packets take up to twice their bytes; the system
// doubles what it is told once more.
void limit_window(int socket, std::optional<std::size_t> bytes) {
  const int window = static_cast<int>(bytes.value_or(kNoLimit));
  const int buffer = bytes ? 2 * window : window;
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
  ::setsockopt(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof(window));
#ifdef SO_BUF_LOCK
  constexpr int kMayGrow = 0;
  if (!bytes) ::setsockopt(socket, SOL_SOCKET, SO_BUF_LOCK, &kMayGrow, sizeof(kMayGrow));
#endif
}

int unacknowledged_bytes(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace gossamer
