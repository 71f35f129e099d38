#pragma once
/// What workers of one host say to each other: packets over sockets of the local domain.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Payloads of up to this many bytes travel inside of their offer.
inline constexpr std::size_t kInlineBytes = std::size_t{16} << 10;

/// Note [Offers]: a send offers its payload: where it lies in shared memory, or, if it is small,
/// the bytes themselves. The receiver says `taken` once the receive with its tag is there, which is
/// done by that, and `back` when it has read what lies in shared memory. An offer that is withdrawn
/// before it was taken comes back, too. The one that connected sends the offers; what is said about
/// them comes back over the same connection.
enum class Say : std::uint32_t {
  hello,     ///< first on each connection; `number` is the rank, the job's token follows
  memory,    ///< a descriptor comes with it: memory `number` of `bytes` bytes
  forget,    ///< memory `number` will not be used any more
  offer,     ///< offer `number` of `bytes` bytes, at `offset` of `memory`; 0: they follow
  withdraw,  ///< offer `number` shall not be taken any more
  taken,
  back,
  refuse,  ///< offer `number` has another size than the `bytes` that are expected
  alive,
  bye,  ///< the reason follows
};

/// The fixed beginning of every packet.
struct Words {
  std::uint32_t magic = 0x676f7373;
  Say say = Say::alive;
  Tag tag = {};
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t memory = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(Words) == 56);

enum class PacketResult { done, later, ended };

/// One end of a connection, or what listens for them. Never blocks.
class PacketSocket {
 public:
  PacketSocket() = default;
  explicit PacketSocket(Descriptor socket) : socket_(std::move(socket)) {}

  /// Listens under a name that no file system has. Throws IoError.
  static PacketSocket listen(const std::string& name);
  /// Connects to such a name; an empty socket where nobody listens.
  static PacketSocket connect(const std::string& name);
  /// The next that connects, if it is of the same user; an empty socket without one.
  PacketSocket accept() const;

  int descriptor() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void reset() { socket_.reset(); }
  /// The process at the other end, or 0 where that cannot be seen.
  pid_t process() const;

  /// Whether receive() would not say `later`.
  bool has_news() const;
  /// `later` when the other end does not read.
  PacketResult send(const Words& words, std::span<const std::byte> data, int descriptor) const;
  /// Fills all three; `later` when nothing has come. A packet that makes no sense is an end.
  PacketResult receive(Words& words, std::vector<std::byte>& data, Descriptor& descriptor) const;

 private:
  Descriptor socket_;
};

}  // namespace gossamer
