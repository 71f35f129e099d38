#pragma once
/// For fuzz targets: what a worker does with its only peer, as an input says.

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/frame.h"
#include "gossamer/transport/net/peer.h"

namespace gossamer {

/// Sends, receives and all else that a transport asks of a peer. Memory of an operation goes as
/// soon as the caller may free it, so that a touch of it afterwards is found.
class PeerScript {
 public:
  /// `wire` is one to a worker of this host, which shares memory, or one over streams.
  PeerScript(PeerOptions options, const MakeWire& wire, bool shares_memory)
      : peer_(std::move(options), loop_, ended_, wire), shares_memory_(shares_memory) {}
  ~PeerScript() {
    while (!posted_.empty()) drop(0);
  }
  PeerScript(const PeerScript&) = delete;
  PeerScript& operator=(const PeerScript&) = delete;

  Peer& peer() { return peer_; }

  static constexpr int kDeeds = 7;

  void act(int deed, FuzzBytes& input) {
    const auto which = input.take<std::uint8_t>();
    if (deed == 0) post(true, which, input.take<std::uint8_t>());
    if (deed == 1) post(false, which, input.take<std::uint8_t>());
    if (deed == 2 && !posted_.empty()) drop(which % posted_.size());
    if (deed == 3 && !posted_.empty()) {
      peer_.expire(posted_[which % posted_.size()].operation, Deadline::max(), silences_);
    }
    if (deed == 4) {
      peer_.beat({.idle_since = Deadline::max(),
                  .silence = which % 8 == 0 ? Silence::given_up : Silence::none});
    }
    if (deed == 5) peer_.close({"this end closed it", "the peer closed it"});
    if (deed == 6) peer_.handle(which % 2 == 0 ? EventLoop::Kind::in : EventLoop::Kind::out);
    settle();
  }
  /// Looks at all that has ended, as the caller would.
  void settle() {
    ended_.clear();
    for (const Posted& each : posted_) {
      const NetOperation& operation = *each.operation;
      if (operation.state != Status::State::done) continue;
      has_done_ = true;
      if (operation.sending) continue;
      fuzz_check(operation.content.size() == operation.bytes, "a receive of another size");
      for (const std::byte byte : operation.content) sum_ += std::to_integer<unsigned>(byte);
    }
  }
  /// Something that was posted has been done.
  bool has_done() const { return has_done_; }

 private:
  struct Posted {
    Peer::Pointer operation;
    std::unique_ptr<std::byte[]> memory;
  };

  void post(bool sending, unsigned tag, unsigned size) {
    constexpr std::size_t kMost = 12;
    if (posted_.size() >= kMost) drop(0);
    // Large ones take several turns of the socket.
    const std::size_t bytes = size < 200 ? size : std::size_t{size} << 11U;
    Posted posted{std::make_shared<NetOperation>(),
                  std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1))};
    NetOperation& operation = *posted.operation;
    operation.sending = sending;
    operation.peer = 1;
    operation.tag = {.step = tag % 4};
    operation.bytes = bytes;
    operation.posted = Clock::now();
    operation.deadline = Deadline::max();
    operation.landing = posted.memory.get();
    try {
      const NetPayload payload = sending ? payload_in(posted.memory.get(), bytes) : NetPayload{};
      peer_.post(posted.operation, payload);
      posted_.push_back(std::move(posted));
    } catch (const std::invalid_argument&) {  // its tag is taken
    }
  }
  /// Large ones for a peer of the same host lie in shared memory.
  NetPayload payload_in(std::byte* memory, std::size_t bytes) const {
    if (!shares_memory_ || bytes <= kInlineBytes) return {.bytes = {memory, bytes}};
    const auto shared = std::make_shared<SharedMemory>(bytes);
    return {.bytes = {shared->data(), bytes}, .memory = shared, .keeps = shared};
  }
  void drop(std::size_t index) {
    peer_.release(posted_[index].operation);
    posted_.erase(posted_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  EventLoop loop_{std::chrono::hours(1)};
  EndedOperations ended_;
  Peer peer_;
  const bool shares_memory_;
  const SilenceWatch silences_{std::chrono::seconds(1), {}};
  std::vector<Posted> posted_;
  bool has_done_ = false;
  unsigned sum_ = 0;
};

}  // namespace gossamer
