#pragma once
/// A peer on the same host.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "gossamer/transport/net/connection.h"
#include "gossamer/transport/net/kept_offers.h"
#include "gossamer/transport/net/peer.h"

namespace gossamer {

/// A worker of the same host, which reads payloads in shared memory; see Note [Offers].
class LocalPeer final : public Peer {
 public:
  LocalPeer(PeerOptions options, std::string address)
      : Peer(std::move(options)), address_(std::move(address)) {}

  bool shares_memory() const override { return true; }
  bool send(const Pointer& operation, const NetPayload& payload) override;
  bool receive(const Pointer& operation) override;
  void release(NetOperation& operation) override;
  bool close(const Ending& ending) override;
  bool hear(EventLoop::Kind kind) override;
  bool bury() override;
  bool reach() override;
  void retire(EventLoop& loop) override;
  bool watch(EventLoop& loop) override;
  /// The peer has connected; false if it had done so before.
  bool greet(PacketSocket socket);

 private:
  struct Lent {
    Pointer send;  ///< null once it has ended
    std::shared_ptr<const void> keeps;
    bool is_inline = false;
  };

  bool say_alive(Deadline before) override;
  bool is_connected() const override { return out_ || in_; }
  void forget_sends() override;
  void forget_receives() override;

  bool answer(const Words& words, std::span<const std::byte> text);
  bool hear_welcome(const Words& words, std::span<const std::byte> text);
  std::uint32_t announce(const std::shared_ptr<const SharedMemory>& memory);
  void forget_memories();
  bool hear(Connection& connection);
  bool end_over(const Connection& connection, const std::string& reason);
  void watch(EventLoop& loop, Connection& connection, EventLoop::Kind kind);
  bool hear_one(Connection& connection, const Words& words, std::vector<std::byte>& data,
                Descriptor descriptor);
  bool hear_forget(const Words& words);
  bool hear_withdraw(const Words& words);
  bool hear_offer(const Words& words, std::vector<std::byte>& data);
  Pointer take_lent(std::uint64_t number);
  bool hear_taken(const Words& words);
  bool hear_back(const Words& words);
  bool hear_refuse(const Words& words);
  bool match(const Offer& offer, NetOperation& receive);
  void say_about(Say say, std::uint64_t offer, std::uint64_t bytes = 0);

  const std::string address_;
  bool has_connected_ = false;
  bool greeted_ = false;  ///< hello has been said over out_
  bool trusted_ = false;  ///< the peer has proved who it is over out_
  Meeting meeting_;       ///< over out_
  Connection out_;        ///< made by this worker, for its offers
  Connection in_;         ///< made by the peer, for the peer's

  std::uint64_t last_offer_ = 0;
  std::unordered_map<std::uint64_t, Lent> lent_;
  std::uint32_t last_memory_ = 0;
  std::map<std::weak_ptr<const SharedMemory>, std::uint32_t, std::owner_less<>> announced_;

  KeptOffers offers_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const SharedMapping>> mappings_;
};

}  // namespace gossamer
