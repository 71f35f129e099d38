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
class StreamPeer final : public Peer {
 public:
  StreamPeer(int rank, int peer, StreamAddress address, std::string token)
      : Peer(rank, peer), address_(std::move(address)), token_(std::move(token)) {}

  bool shares_memory() const override { return false; }
  bool send(const Pointer& operation, const NetPayload& payload) override;
  bool receive(const Pointer& operation) override;
  void release(NetOperation& operation) override;
  bool close(const Ending& ending) override;
  bool hear(EventLoop::Kind kind) override;
  bool bury() override { return false; }
  void watch(EventLoop& loop) override;
  void finish(Deadline limit) override;
  /// The peer has connected and proved who it is; false if it had done so before.
  bool greet(Stream stream);

 private:
  struct Ready {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
  };

  void say_alive(Deadline before) override;
  bool is_connected() const override { return out_ || in_; }
  void forget_sends() override;
  void forget_receives() override;

  bool refused(const Pointer& operation);
  bool begin_if_ready(const Pointer& send);
  bool begin(const Pointer& send, const Ready& ready);
  bool finish_sends(const std::vector<std::uint64_t>& finished);
  void say_ready(NetOperation& receive);
  bool hear_out(const Words& words, std::span<const std::byte> text);
  bool hear_in(const Words& words, std::span<const std::byte> text);
  bool answer(std::span<const std::byte> nonce);
  bool hear_refuse(const Words& words);
  bool hear_stopped(const Words& words);
  bool hear_ready(const Words& words);
  bool hear_unready(const Words& words);
  std::span<std::byte> landing_of(const Words& words);
  bool hear_landed(const Words& words);
  bool end_over(EventLoop::Kind kind, const std::string& reason);
  void watch(EventLoop& loop, Stream& stream, EventLoop::Kind kind);

  const StreamAddress address_;
  const std::string token_;
  bool has_connected_ = false;
  Stream out_;            ///< made by this worker, for what it receives
  Stream in_;             ///< made by the peer, for what this worker sends
  Nonce nonce_ = {};      ///< said over out_
  bool greeted_ = false;  ///< hello has been said over out_
  bool trusted_ = false;  ///< the peer has proved who it is over out_
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Pointer> landing_;              ///< receives, by number
  std::unordered_map<std::uint64_t, Pointer> streaming_;  ///< sends under way, by the peer's number
  std::map<Tag, Ready> ready_;                            ///< receives of the peer without a send
};

}  // namespace gossamer
