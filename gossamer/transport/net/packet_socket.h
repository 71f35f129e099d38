#pragma once
/// PacketSocket: frames between workers of one host, as packets over sockets of the local domain.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/frame.h"

namespace gossamer {

/// starved: the process has no room for a descriptor that came with it.
enum class PacketResult { done, later, ended, starved };

/// One end of a connection, or a listener. Never blocks.
class PacketSocket {
 public:
  PacketSocket() = default;
  explicit PacketSocket(Descriptor socket) : socket_(std::move(socket)) {}

  /// Listens under a name that no file system has. Throws IoError.
  static PacketSocket listen(const std::string& name);
  /// Connects to such a name; an empty socket where nobody listens.
  static PacketSocket connect(const std::string& name);
  /// The next that connects, if it is of the same user; an empty socket without one, and errno.
  PacketSocket accept() const;

  int descriptor() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void reset() { socket_.reset(); }
  /// Whether the process at the other end, or the one that listens there, is of this user.
  bool is_of_this_user() const;
  /// The process at the other end, or 0 where that cannot be seen.
  pid_t process() const;

  /// Whether receive() would not return `later`.
  bool is_readable() const;
  /// `later` when the other end does not read.
  PacketResult send(const FrameHeader& header, std::span<const std::byte> data,
                    int descriptor) const;
  /// Fills all three; `later` when nothing has come. A packet that makes no sense is an end.
  PacketResult receive(FrameHeader& header, std::vector<std::byte>& data,
                       Descriptor& descriptor) const;

 private:
  Descriptor socket_;
};

}  // namespace gossamer
