#pragma once
/// Stream: frames and payloads over a TCP connection, both ways.

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/frame.h"
#include "gossamer/transport/net/frame_seal.h"
#include "gossamer/transport/net/receive_window.h"
#include "gossamer/transport/net/tls.h"

namespace gossamer {

/// What a stream does with what it reads.
struct StreamHandlers {
  /// A frame that is not of a payload, with its text.
  std::function<void(const FrameHeader&, std::span<const std::byte> text)> frame;
  /// Where the bytes of a payload that follow the header go: as many as follow, or none, to drop
  /// them.
  std::function<std::span<std::byte>(const FrameHeader&)> landing;
  /// They are there.
  std::function<void(const FrameHeader&)> landed;
};

/// Payloads are cut into frames, and those under way take turns; other frames go before the next
/// part of a payload. Frames of the handshake go as they are. All others are authenticated, by TLS
/// or by the keys that authenticate() got, and one that was changed on the way ends the stream.
/// Payloads may have a CRC-32C instead, which stands for itself against faults, not against
/// somebody on the way. Not for several threads at once. Never blocks.
class Stream {
 public:
  Stream() = default;
  /// Over TLS where there are keys.
  explicit Stream(Descriptor socket, const std::shared_ptr<const TlsKeys>& keys = nullptr,
                  Tls::End end = Tls::End::connects);

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int descriptor() const { return socket_.get(); }
  /// The other end is gone, or makes no sense.
  bool has_ended() const { return ended_; }
  /// It has ended because something else arrived than was sent.
  bool is_corrupt() const { return is_corrupt_; }
  /// The system's number for how it has ended; 0 for an end as it should be.
  int error() const { return error_; }
  /// It has ended because nothing came back from the other end, which may live.
  bool is_unheard() const;
  /// Why TLS has ended it; empty unless it has.
  std::string tls_failure() const { return tls_ ? tls_->failure() : std::string(); }
  /// Why it has ended, for an error.
  std::string reason() const;
  Clock::time_point last_sent() const { return last_sent_; }
  Clock::time_point last_received() const { return last_received_; }

  /// From now on the two ends send and receive more than frames of the handshake, under these keys;
  /// over TLS they may from the beginning.
  void authenticate(const FrameKey& sends, const FrameKey& receives, bool payloads = true);
  /// A frame that cannot be authenticated yet waits until it can.
  void send(FrameHeader header, std::span<const std::byte> text = {});
  /// Begins to send a payload, which must stay until take_finished() has its number, or stop().
  void start(std::uint64_t number, std::span<const std::byte> payload);
  /// Sends no more of it and does not touch it any more.
  void stop(std::uint64_t number);
  /// Writes what the other end takes.
  void write();
  /// The numbers of payloads that have left entirely since it was last asked.
  std::vector<std::uint64_t> take_finished() { return std::exchange(finished_, {}); }
  /// More waits to be sent than an end that reads would leave.
  bool is_overfull() const { return !ended_ && waiting_.size() + early_.size() > kMostOpen; }
  bool is_behind() const {
    if (tls_ && tls_->is_behind()) return !ended_;
    if (tls_ && !tls_->is_ready()) return false;  // the handshake waits for the other end
    return !ended_ && (has_frame_ || !waiting_.empty() || (may_send() && !payloads_.empty()));
  }

  /// Reads what has come.
  void read(const StreamHandlers& handlers);
  /// From within a handler: reads no further, whatever has come.
  void pause() { pauses_ = true; }
  /// What still comes of this number is dropped; its landing is not touched any more.
  void drop(std::uint64_t number);
  /// Sends no more, and gives the other end until `limit` to take what was sent.
  void finish(Deadline limit);
  /// Closes it.
  void reset() { *this = Stream(); }

 private:
  struct SealedHeader {
    FrameHeader header;
    FrameCode body = {};  ///< of what follows
    FrameCode head = {};  ///< of the above
  };
  static_assert(sizeof(SealedHeader) == 96);

  struct Frame {
    SealedHeader head;
    std::vector<std::byte> own;  ///< what follows, unless it lies in a payload
    std::span<const std::byte> body;
    std::size_t written = 0;
    bool is_last = false;  ///< of its payload
  };
  struct Payload {
    std::uint64_t number = 0;
    std::span<const std::byte> bytes;
    std::size_t offset = 0;
  };

  bool may_send() const { return tls_ || send_seal_; }
  void seal(SealedHeader& head, std::span<const std::byte> body);
  bool is_right(const SealedHeader& head);
  ssize_t send_parts(std::array<iovec, 2>& parts);
  ssize_t receive_parts(std::array<iovec, 2>& parts);
  bool was_sent(ssize_t result);
  bool next_frame();
  void begin_body(const StreamHandlers& handlers);
  void end_body(const StreamHandlers& handlers);
  void sleep_through(std::size_t bytes);
  void fit_window(double bytes_per_s);

  Descriptor socket_;
  std::unique_ptr<Tls> tls_;  ///< over the socket
  bool ended_ = false;
  int error_ = 0;
  bool is_corrupt_ = false;
  bool is_fit_ = false;                      ///< see fit_buffer()
  std::unique_ptr<FrameSeal> send_seal_;     ///< none: over TLS, or until authenticate()
  std::unique_ptr<FrameSeal> receive_seal_;  ///< the same
  Clock::time_point last_sent_ = {};
  Clock::time_point last_received_ = {};

  std::deque<Frame> early_;  ///< until authenticate()
  std::deque<Frame> waiting_;
  std::deque<Payload> payloads_;
  std::vector<std::uint64_t> finished_;
  Frame frame_;  ///< being written
  bool has_frame_ = false;

  SealedHeader incoming_;  ///< being read
  bool in_body_ = false;
  bool is_sealed_ = false;  ///< what is being read
  bool pauses_ = false;
  std::size_t header_ = 0;  ///< bytes of it that are there
  std::size_t left_ = 0;    ///< bytes that follow it and are not there yet
  std::byte* landing_ = nullptr;
  std::size_t wanted_ = 1;  ///< bytes, before which there is no news
  std::vector<std::byte> text_;
  ReceiveWindow window_;
};

}  // namespace gossamer
