#pragma once
/// A peer that is reached over TCP.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/peer.h"
#include "gossamer/transport/net/stream.h"
#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {

/// A worker of another host; see Note [Receivers are ready].
///
/// Note [Until they have met]: a connection that ends before the peer has proved who it is is made
/// again, for half a minute: the link may have been down for a moment, or one of the two has stood
/// still for longer than strangers may. The peer knows nothing of such a connection; if it cannot
/// be made at all, or TLS finds that the other end is not of this job, the whole edge ends, so that
/// the peer does not wait for what this worker would say over it.
class StreamPeer final : public Peer {
 public:
  /// Over TLS where there are keys.
  StreamPeer(PeerOptions options, StreamAddress address, std::shared_ptr<const TlsKeys> keys)
      : Peer(std::move(options)), address_(std::move(address)), keys_(std::move(keys)) {}

  bool shares_memory() const override { return false; }
  bool send(const Pointer& operation, const NetPayload& payload) override;
  bool receive(const Pointer& operation) override;
  void release(NetOperation& operation) override;
  bool close(const Ending& ending) override;
  bool hear(EventLoop::Kind kind) override;
  bool bury() override { return false; }
  bool reach() override;
  void retire(EventLoop& loop) override;
  bool watch(EventLoop& loop) override;
  void finish(Deadline limit) override;
  /// The peer has connected and proved who it is; false if it had done so before.
  bool greet(Stream stream);

 private:
  struct Ready {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
  };

  bool say_alive(Deadline before) override;
  bool is_connected() const override { return out_ || in_; }
  void forget_sends() override;
  void forget_receives() override;

  bool begin_if_ready(const Pointer& send);
  bool begin(const Pointer& send, const Ready& ready);
  bool finish_sends();
  void say_ready(NetOperation& receive);
  bool hear_out(const Words& words, std::span<const std::byte> text);
  bool hear_in(const Words& words, std::span<const std::byte> text);
  bool answer(const Words& words, std::span<const std::byte> text);
  bool hear_welcome(const Words& words, std::span<const std::byte> text);
  bool hear_refuse(const Words& words);
  bool hear_stopped(const Words& words);
  bool hear_ready(const Words& words);
  bool hear_unready(const Words& words);
  void forget_ready(std::uint64_t number);
  std::span<std::byte> landing_of(const Words& words);
  bool hear_landed(const Words& words);
  bool end_over(EventLoop::Kind kind, const std::string& reason);
  bool lose(EventLoop::Kind kind, const Stream& stream);
  bool watch(EventLoop& loop, Stream& stream, EventLoop::Kind kind);

  const StreamAddress address_;
  const std::shared_ptr<const TlsKeys> keys_;
  bool has_connected_ = false;
  bool tries_again_ = false;  ///< to connect, at the next beat
  Deadline first_try_ = {};
  Stream out_;            ///< made by this worker, for what it receives
  Stream in_;             ///< made by the peer, for what this worker sends
  Meeting meeting_;       ///< over out_
  bool greeted_ = false;  ///< hello has been said over out_
  bool trusted_ = false;  ///< the peer has proved who it is over out_
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Pointer> landing_;              ///< receives, by number
  std::unordered_map<std::uint64_t, Pointer> streaming_;  ///< sends under way, by the peer's number
  std::map<Tag, Ready> ready_;                            ///< receives of the peer without a send
  std::unordered_map<std::uint64_t, Tag> ready_tags_;     ///< the same by the peer's number
};

}  // namespace gossamer
