#pragma once
/// Acceptor: where others connect, and what they must prove before they are let in.

#include <cstdint>
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

/// Of a worker that knows the token, and proved this identity; one of the two is there.
struct AcceptedConnection {
  Identity identity;
  PacketSocket socket;
  Stream stream;
};

struct AcceptorOptions {
  Identity own;  ///< of the worker that listens, without the endpoint
  std::string token;
  std::string address = {};  ///< to listen on besides this host; empty: none
  PortRange ports = {};
  bool authenticates = false;                     ///< payloads over streams, see NetOptions
  std::shared_ptr<const TlsKeys> keys = nullptr;  ///< streams are over TLS where there are some
};

/// Of a worker with these options, and GOSSAMER_PORTS of the environment.
AcceptorOptions acceptor_options(const NetOptions& options, std::shared_ptr<const TlsKeys> keys);

/// Not for several threads at once. A connection may stay unverified for a few seconds. Few may
/// wait at once. When more come, the host with most of them loses the one that has waited longest,
/// so that a worker of another host, or one that answers at once, is let in.
///
/// Note [Floods of connections]: to accept a connection takes time that payloads wait for, and
/// whoever reaches the listener can connect without end. So a burst of them is accepted at once, as
/// many as a large job makes when it starts; then so many per beat, and the others wait in the
/// system's queue. Connections of workers do not count.
class Acceptor {
 public:
  /// Listens on this host and on the address. Throws as listen_for_streams() does. The loop must
  /// outlive it.
  Acceptor(AcceptorOptions options, EventLoop& loop);

  /// The name under which others of this host connect.
  const std::string& name() const { return name_; }
  /// Where others connect; port 0: nowhere.
  const StreamAddress& address() const { return stream_listener_.address; }
  /// There is an event of a kind of the acceptor; the connection of a worker, if one is verified.
  std::optional<AcceptedConnection> handle(EventLoop::Key key);
  /// Closes connections that were unverified for too long, and listens again after a rest.
  void beat(Deadline now);

 private:
  struct Unverified {
    PacketSocket socket;
    Stream stream;
    Nonce nonce = {};
    std::string host = {};  ///< it comes from; empty: this one
    Deadline limit = {};
    int descriptor() const { return stream ? stream.descriptor() : socket.descriptor(); }
  };

  void accept_local();
  void accept_streams();
  void add(Unverified unverified);
  void drop_one();
  bool may_accept();
  void rest_if_full();
  void rest();
  void watch_listeners();
  std::optional<Handshake> verify(const Unverified& unverified, const FrameHeader& header,
                                  std::span<const std::byte> text) const;
  std::optional<AcceptedConnection> handle_local(Unverified& unverified, bool& leaves) const;
  std::optional<AcceptedConnection> handle_stream(Unverified& unverified, bool& leaves) const;

  const Identity own_;
  const std::string token_;
  const std::shared_ptr<const TlsKeys> keys_;
  const bool authenticates_;
  const std::string name_;
  EventLoop& loop_;
  PacketSocket local_listener_;
  StreamListener stream_listener_;
  bool rests_ = false;      ///< the listeners are not watched until the next beat
  std::int64_t allowance_;  ///< connections that may be accepted before the next beat
  std::map<std::uint32_t, Unverified> unverified_;  ///< in the order in which they came
  std::uint32_t last_unverified_ = 0;
};

}  // namespace gossamer
