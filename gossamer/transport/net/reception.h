#pragma once
/// Reception: where others connect, and what they must prove before they are let in.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/net/packet_socket.h"
#include "gossamer/transport/net/stream.h"
#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {

/// Somebody who knows the token, and says that it is this worker; over one of the two.
struct Arrival {
  Introduction who;
  PacketSocket socket;
  Stream stream;
};

struct ReceptionOptions {
  Introduction own;  ///< whose it is, without the card
  std::string token;
  std::string address = {};  ///< to listen on besides this host; empty: none
  PortRange ports = {};
  bool authenticates = false;                     ///< payloads over streams, see NetOptions
  std::shared_ptr<const TlsKeys> keys = nullptr;  ///< streams are over TLS where there are some
};

/// Of a worker with these options, and GOSSAMER_PORTS of the environment.
ReceptionOptions reception_of(const NetOptions& options, std::shared_ptr<const TlsKeys> keys);

/// Not for several threads at once. A stranger has a few seconds. Few may wait at once; where more
/// come, those go first that have waited longest of the host that has most of them, so that whoever
/// comes from elsewhere, or answers at once, is heard.
class Reception {
 public:
  /// Listens on this host and on the address. Throws as listen_for_streams() does. The loop must
  /// outlive it.
  Reception(ReceptionOptions options, EventLoop& loop);

  /// The name under which others of this host connect.
  const std::string& name() const { return name_; }
  /// Where others connect; port 0: nowhere.
  const StreamAddress& address() const { return stream_door_.address; }
  /// There is news of a kind door or stranger; who has come, if somebody has.
  std::optional<Arrival> hear(EventLoop::Key key);
  /// Sends away who has been there for too long, and opens the doors again.
  void beat(Deadline now);

 private:
  struct Stranger {
    PacketSocket socket;
    Stream stream;
    Nonce nonce = {};
    std::string host = {};  ///< it comes from; empty: this one
    Deadline limit = {};
    int descriptor() const { return stream ? stream.descriptor() : socket.descriptor(); }
  };

  void open_door();
  void open_stream_door();
  void admit(Stranger stranger);
  void turn_one_away();
  void rest();
  void watch_doors();
  std::optional<Meeting> meeting_with(const Stranger& stranger, const Words& words,
                                      std::span<const std::byte> text) const;
  std::optional<Arrival> hear_stranger(Stranger& stranger, bool& leaves) const;
  std::optional<Arrival> hear_stream(Stranger& stranger, bool& leaves) const;

  const Introduction own_;
  const std::string token_;
  const std::shared_ptr<const TlsKeys> keys_;
  const bool authenticates_;
  const std::string name_;
  EventLoop& loop_;
  PacketSocket door_;
  StreamDoor stream_door_;
  bool rests_ = false;                           ///< the doors are not watched until the next beat
  std::map<std::uint32_t, Stranger> strangers_;  ///< in the order in which they came
  std::uint32_t last_stranger_ = 0;
};

}  // namespace gossamer
