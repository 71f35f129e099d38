#include "gossamer/transport/net/packet_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kPacketPeersAtOnce = 16;
constexpr int kPackets = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct Address {
  sockaddr_un value = {};
  socklen_t length = 0;
};

/// A name in the abstract namespace, which vanishes with the socket.
Address address_of(const std::string& name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  GOSSAMER_ASSERT(name.size() < sizeof(address.value.sun_path));
  std::memcpy(&address.value.sun_path[1], name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

ucred peer_of(int socket) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {0, ~0U, ~0U};
  return peer;
}

}  // namespace

PacketSocket PacketSocket::listen(const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, kPackets, 0));
  const Address address = address_of(name);
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) !=
          0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    fail_io({.place = "net", .what = "cannot listen on this host", .got = std::strerror(errno)});
  }
  return PacketSocket(std::move(socket));
}

PacketSocket PacketSocket::connect(const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, kPackets, 0));
  const Address address = address_of(name);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.value),
                           address.length) != 0) {
    return {};
  }
  return PacketSocket(std::move(socket));
}

PacketSocket PacketSocket::accept() const {
  for (int i = 0; i < kPacketPeersAtOnce; ++i) {
    Descriptor next(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!next) return {};
    if (peer_of(next.get()).uid == ::geteuid()) return PacketSocket(std::move(next));
  }
  errno = EAGAIN;
  return {};
}

bool PacketSocket::is_of_this_user() const { return peer_of(socket_.get()).uid == ::geteuid(); }

pid_t PacketSocket::process() const { return peer_of(socket_.get()).pid; }

bool PacketSocket::is_readable() const {
  pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

PacketResult PacketSocket::send(const FrameHeader& header, std::span<const std::byte> data,
                                int descriptor) const {
  std::array<iovec, 2> parts = {{{const_cast<FrameHeader*>(&header), sizeof(header)},
                                 {const_cast<std::byte*>(data.data()), data.size()}}};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = data.empty() ? 1 : 2;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  for (;;) {
    if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return PacketResult::done;
    if (errno == EINTR) continue;
    const bool full = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS;
    return full ? PacketResult::later : PacketResult::ended;
  }
}

PacketResult PacketSocket::receive(FrameHeader& header, std::vector<std::byte>& data,
                                   Descriptor& descriptor) const {
  data.resize(kInlineBytes);
  descriptor.reset();
  std::array<iovec, 2> parts = {{{&header, sizeof(header)}, {data.data(), data.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = 2;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  for (;;) {
    got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    // A reset is told once, before the last frames of the other end.
    if (got >= 0 || (errno != EINTR && errno != ECONNRESET)) break;
  }
  if (got < 0) return errno == EAGAIN ? PacketResult::later : PacketResult::ended;
  for (cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr;
       rights = CMSG_NXTHDR(&message, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    // There is room for more than the one that belongs here.
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= rights->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(rights) + at, sizeof(int));
      Descriptor given(number);
      if (!descriptor) descriptor = std::move(given);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && !descriptor) return PacketResult::starved;
  const bool whole = static_cast<std::size_t>(got) >= sizeof(header) &&
                     (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!whole || header.magic != FrameHeader{}.magic) return PacketResult::ended;
  data.resize(static_cast<std::size_t>(got) - sizeof(header));
  return PacketResult::done;
}

}  // namespace gossamer
