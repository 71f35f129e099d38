#pragma once
/// Stream: words and payloads over a TCP connection, both ways.

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/frame_seal.h"
#include "gossamer/transport/net/receive_window.h"
#include "gossamer/transport/net/tls.h"
#include "gossamer/transport/net/words.h"

namespace gossamer {

/// What a stream does with what it reads.
struct StreamListener {
  /// Other words than data, with what followed them.
  std::function<void(const Words&, std::span<const std::byte> text)> heard;
  /// Where the bytes that follow data words go: as many as follow, or none, to drop them.
  std::function<std::span<std::byte>(const Words&)> landing;
  /// They are there.
  std::function<void(const Words&)> landed;
};

/// Payloads are cut into frames, and those under way take turns; other words go before the next
/// frame. Greetings go as they are; all other frames are authenticated, by TLS or by the keys that
/// authenticate() got, and one that was changed on the way ends the stream. Payloads may have a
/// CRC-32C instead, which stands for itself against faults, not against somebody on the way. Not
/// for several threads at once. Never blocks.
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
  bool is_spoiled() const { return is_spoiled_; }
  /// The system's word for how it has ended; 0 for an end as it should be.
  int error() const { return error_; }
  /// Why TLS has ended it; empty unless it has.
  std::string tls_failure() const { return tls_ ? tls_->failure() : std::string(); }
  Clock::time_point last_said() const { return last_said_; }
  Clock::time_point last_heard() const { return last_heard_; }

  /// From now on the two ends say and hear more than greetings, under these keys; over TLS they
  /// may from the beginning.
  void authenticate(const FrameKey& says, const FrameKey& hears, bool payloads = true);
  /// What cannot be authenticated yet waits until it can.
  void say(Words words, std::span<const std::byte> text = {});
  /// Begins to send a payload, which must stay until take_finished() has its number, or stop().
  void start(std::uint64_t number, std::span<const std::byte> payload);
  /// Sends no more of it and does not touch it any more.
  void stop(std::uint64_t number);
  /// Writes what the other end takes.
  void write();
  /// The numbers of payloads that have left entirely since it was last asked.
  std::vector<std::uint64_t> take_finished() { return std::exchange(finished_, {}); }
  /// More waits to be said than an end that reads would leave.
  bool is_overfull() const { return !ended_ && words_.size() + early_.size() > kMostOpen; }
  bool is_behind() const {
    if (tls_ && tls_->is_behind()) return !ended_;
    if (tls_ && !tls_->is_ready()) return false;  // the handshake waits for the other end
    return !ended_ && (has_frame_ || !words_.empty() || (may_speak() && !payloads_.empty()));
  }

  /// Reads what has come.
  void read(const StreamListener& listener);
  /// From within a listener: reads no further, whatever has come.
  void pause() { pauses_ = true; }
  /// What still comes of this number is dropped; its landing is not touched any more.
  void drop(std::uint64_t number);
  /// Says no more, and gives the other end until `limit` to take what was said.
  void finish(Deadline limit);
  /// Closes it.
  void reset() { *this = Stream(); }

 private:
  struct Header {
    Words words;
    FrameCode body = {};  ///< of what follows
    FrameCode head = {};  ///< of the above
  };
  static_assert(sizeof(Header) == 96);

  struct Frame {
    Header header;
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

  bool may_speak() const { return tls_ || said_seal_; }
  void seal(Header& header, std::span<const std::byte> body);
  bool is_right(const Header& header);
  ssize_t send(std::array<iovec, 2>& parts);
  ssize_t receive(std::array<iovec, 2>& parts);
  bool was_sent(ssize_t result);
  bool next_frame();
  void begin_body(const StreamListener& listener);
  void end_body(const StreamListener& listener);
  void sleep_through(std::size_t bytes);
  void fit_window(double bytes_per_s);

  Descriptor socket_;
  std::unique_ptr<Tls> tls_;  ///< over the socket
  bool ended_ = false;
  int error_ = 0;
  bool is_spoiled_ = false;
  bool is_fit_ = false;                    ///< see fit_buffer()
  std::unique_ptr<FrameSeal> said_seal_;   ///< none: over TLS, or until authenticate()
  std::unique_ptr<FrameSeal> heard_seal_;  ///< the same
  Clock::time_point last_said_ = {};
  Clock::time_point last_heard_ = {};

  std::deque<Frame> early_;  ///< until authenticate()
  std::deque<Frame> words_;
  std::deque<Payload> payloads_;
  std::vector<std::uint64_t> finished_;
  Frame frame_;  ///< being written
  bool has_frame_ = false;

  Header heard_;  ///< being read
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
