#include "gossamer/transport/net/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {
namespace {

// Small enough that a payload that is stopped does not hold up the others.
constexpr std::size_t kFrameBytes = std::size_t{512} << 10;
constexpr std::size_t kMostText = 1024;
// So that one stream does not keep the others waiting, nor those that wait for the lock.
constexpr std::size_t kBytesAtOnce = std::size_t{512} << 10;
// A frame costs about as much as so many bytes of a payload, however short it is.
constexpr std::size_t kCostOfFrame = std::size_t{8} << 10;
constexpr std::size_t kBytesToWake = std::size_t{128} << 10;

bool makes_sense(const FrameHeader& header) {
  const std::size_t limit = header.type == FrameType::data ? kFrameBytes : kMostText;
  return header.magic == FrameHeader{}.magic && header.follows <= limit;
}

FrameSeal::Part body_of(const FrameHeader& header) {
  return header.type == FrameType::data ? FrameSeal::Part::payload : FrameSeal::Part::text;
}

/// The code that only the other end can have written, of this frame.
FrameCode head_of(FrameSeal& seal, const FrameHeader& header, const FrameCode& body) {
  seal.begin(FrameSeal::Part::head);
  seal.add(std::as_bytes(std::span(&header, 1)));
  seal.add(body);
  return seal.end();
}

}  // namespace

Stream::Stream(Descriptor socket, const std::shared_ptr<const TlsKeys>& keys, Tls::End end)
    : socket_(std::move(socket)),
      tls_(socket_ && keys ? std::make_unique<Tls>(keys, socket_.get(), end) : nullptr) {}

bool Stream::is_unheard() const {
  return error_ == ETIMEDOUT || error_ == EHOSTUNREACH || error_ == ENETUNREACH;
}

std::string Stream::reason() const {
  const std::string reason = "the peer has ended, or the link to it";
  if (!tls_failure().empty()) return reason + " (TLS: " + tls_failure() + ")";
  return error_ == 0 ? reason : reason + " (" + std::strerror(error_) + ")";
}

void Stream::authenticate(const FrameKey& sends, const FrameKey& receives, bool payloads) {
  if (tls_) return;
  send_seal_ = std::make_unique<FrameSeal>(sends, payloads);
  receive_seal_ = std::make_unique<FrameSeal>(receives, payloads);
  for (Frame& frame : early_) waiting_.push_back(std::move(frame));
  early_.clear();
}

void Stream::seal(SealedHeader& head, std::span<const std::byte> body) {
  if (!send_seal_ || is_handshake(head.header.type)) return;
  send_seal_->begin(body_of(head.header));
  send_seal_->add(body);
  head.body = send_seal_->end();
  head.head = head_of(*send_seal_, head.header, head.body);
  send_seal_->next();
}

ssize_t Stream::send_parts(std::array<iovec, 2>& parts) {
  if (tls_) return tls_->send(parts);
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t Stream::receive_parts(std::array<iovec, 2>& parts) {
  if (tls_) return tls_->receive(parts);
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
}

void Stream::send(FrameHeader header, std::span<const std::byte> text) {
  if (!socket_ || ended_) return;
  last_sent_ = Clock::now();
  header.follows = static_cast<std::uint32_t>(text.size());
  std::deque<Frame>& queue = may_send() || is_handshake(header.type) ? waiting_ : early_;
  queue.push_back({.head = {.header = header}, .own = {text.begin(), text.end()}, .body = {}});
}

void Stream::start(std::uint64_t number, std::span<const std::byte> payload) {
  if (!is_fit_) is_fit_ = fit_buffer(socket_.get());
  payloads_.push_back({.number = number, .bytes = payload});
}

void Stream::stop(std::uint64_t number) {
  std::erase_if(payloads_, [&](const Payload& payload) { return payload.number == number; });
  const FrameHeader& present = frame_.head.header;
  const bool is_half_way =
      has_frame_ && present.type == FrameType::data && present.number == number;
  if (!is_half_way || frame_.body.data() == frame_.own.data()) return;
  frame_.own.assign(frame_.body.begin(), frame_.body.end());
  frame_.body = frame_.own;
  frame_.is_last = false;
}

bool Stream::next_frame() {
  if (!waiting_.empty()) {
    frame_ = std::move(waiting_.front());
    frame_.body = frame_.own;
    waiting_.pop_front();
    seal(frame_.head, frame_.body);
    return true;
  }
  if (payloads_.empty() || !may_send()) return false;
  Payload payload = payloads_.front();
  payloads_.pop_front();
  const std::size_t count = std::min(kFrameBytes, payload.bytes.size() - payload.offset);
  const std::span<const std::byte> body = payload.bytes.subspan(payload.offset, count);
  frame_ = {.head = {.header = {.type = FrameType::data,
                                .number = payload.number,
                                .offset = payload.offset,
                                .follows = static_cast<std::uint32_t>(count)}},
            .own = {},
            .body = body};
  seal(frame_.head, body);
  payload.offset += count;
  frame_.is_last = payload.offset == payload.bytes.size();
  if (!frame_.is_last) payloads_.push_back(payload);
  last_sent_ = Clock::now();
  return true;
}

/// Else the other end takes no more for now, or there is none any more.
bool Stream::was_sent(ssize_t result) {
  if (result >= 0) return true;
  ended_ = errno != EAGAIN && errno != ENOTCONN && errno != EINPROGRESS && errno != EINTR;
  if (ended_) error_ = errno;
  return false;
}

void Stream::write() {
  std::size_t total = 0;
  const bool may_send = !tls_ || tls_->is_ready();
  while (socket_ && !ended_ && may_send && total < kBytesAtOnce) {
    if (!has_frame_) has_frame_ = next_frame();
    if (!has_frame_) break;
    const std::size_t head = std::min(frame_.written, sizeof(SealedHeader));
    const std::size_t body = frame_.written - head;
    std::array<iovec, 2> parts = {
        {{reinterpret_cast<std::byte*>(&frame_.head) + head, sizeof(SealedHeader) - head},
         {const_cast<std::byte*>(frame_.body.data()) + body, frame_.body.size() - body}}};
    const ssize_t sent = send_parts(parts);
    if (!was_sent(sent)) break;
    frame_.written += static_cast<std::size_t>(sent);
    total += static_cast<std::size_t>(sent);
    if (frame_.written < sizeof(SealedHeader) + frame_.body.size()) continue;
    has_frame_ = false;
    if (frame_.is_last) finished_.push_back(frame_.head.header.number);
  }
  if (tls_ && !ended_) was_sent(tls_->flush());
}

/// Whether a frame's code, where it has one, is right.
bool Stream::is_right(const SealedHeader& head) {
  if (!makes_sense(head.header)) return false;
  if (tls_ || is_handshake(head.header.type)) return true;
  return receive_seal_ && are_equal(head.head, head_of(*receive_seal_, head.header, head.body));
}

/// The header is there; what follows it goes to a landing, is kept as text, or is dropped.
void Stream::begin_body(const StreamHandlers& handlers) {
  if (!is_right(incoming_)) {
    ended_ = is_corrupt_ = true;
    return;
  }
  in_body_ = true;
  is_sealed_ = !tls_ && !is_handshake(incoming_.header.type);
  if (is_sealed_) receive_seal_->begin(body_of(incoming_.header));
  left_ = incoming_.header.follows;
  landing_ = nullptr;
  text_.clear();
  if (incoming_.header.type == FrameType::data) {
    const std::span<std::byte> landing = handlers.landing(incoming_.header);
    if (!landing.empty()) landing_ = landing.data();
  } else {
    text_.resize(left_);
    landing_ = text_.data();
  }
  if (left_ == 0) end_body(handlers);
}

void Stream::end_body(const StreamHandlers& handlers) {
  in_body_ = false;
  header_ = 0;
  if (is_sealed_) {
    const FrameCode code = receive_seal_->end();
    receive_seal_->next();
    if (!are_equal(code, incoming_.body)) {
      ended_ = is_corrupt_ = true;
      return;
    }
  }
  if (incoming_.header.type == FrameType::data) {
    handlers.landed(incoming_.header);
  } else {
    handlers.frame(incoming_.header, text_);
  }
}

void Stream::read(const StreamHandlers& handlers) {
  std::array<std::byte, 4096> dropped;
  std::size_t total = 0;
  std::size_t frames = 0;
  bool all = false;
  pauses_ = false;
  if (tls_) tls_->allow(kBytesAtOnce);
  // What TLS has taken from the socket has to be read now: the system tells of it no more.
  while (socket_ && !ended_ && !pauses_) {
    if (header_ == sizeof(SealedHeader) && !in_body_) {
      if (incoming_.header.type != FrameType::data) ++frames;
      begin_body(handlers);
      continue;
    }
    if (!tls_ && total + frames * kCostOfFrame >= kBytesAtOnce) break;
    // What is left of a body, and the next header with it; or what is left of the header.
    const bool drops = landing_ == nullptr;
    const std::size_t body = !in_body_ ? 0 : drops ? std::min(left_, dropped.size()) : left_;
    const bool reads_header = body == left_ || !in_body_;
    SealedHeader next = incoming_;
    const std::size_t have = in_body_ ? 0 : header_;
    std::array<iovec, 2> parts = {{{drops ? dropped.data() : landing_, body},
                                   {reinterpret_cast<std::byte*>(&next) + have,
                                    reads_header ? sizeof(SealedHeader) - have : 0}}};
    const ssize_t got = receive_parts(parts);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      all = true;
      ended_ = got == 0 || (errno != EAGAIN && errno != ENOTCONN);
      if (ended_ && got < 0) error_ = errno;
      is_corrupt_ = tls_ && tls_->is_corrupt();
      break;
    }
    last_received_ = Clock::now();
    std::size_t bytes = static_cast<std::size_t>(got);
    total += bytes;
    if (in_body_) {
      const std::size_t of_body = std::min(bytes, left_);
      const auto* const body_begin = static_cast<const std::byte*>(parts[0].iov_base);
      if (is_sealed_) receive_seal_->add({body_begin, of_body});
      left_ -= of_body;
      bytes -= of_body;
      if (landing_ != nullptr) landing_ += of_body;
      if (left_ > 0) continue;
      end_body(handlers);
    }
    if (ended_) break;
    incoming_ = next;
    header_ += bytes;
  }
  const std::size_t hidden = tls_ ? Tls::kMostHidden : 0;
  const bool may_sleep = in_body_ && left_ > hidden;
  if (socket_ && !ended_ && !pauses_) {
    sleep_through(may_sleep ? std::min(left_ - hidden, kBytesToWake) : 1);
    const auto rate = window_.read(total, all, in_body_, Clock::now());
    if (rate) fit_window(*rate);
  }
}

/// Fewer bytes do not wake the loop: for each packet of a body that will come anyway, to wake up
/// costs more than to read it.
void Stream::sleep_through(std::size_t bytes) {
  if (bytes == wanted_) return;
  wanted_ = bytes;
  const int count = static_cast<int>(bytes);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVLOWAT, &count, sizeof(count));
}

/// See Note [Short queues]. The system's own limit may have grown meanwhile.
void Stream::fit_window(double bytes_per_s) {
  if (!window_.may_change(bytes_per_s)) return;  // fast ones need not ask the system
  const bool was_limited = window_.is_limited();
  const auto bytes = window_.fit(bytes_per_s, way_of(socket_.get()));
  if (bytes || was_limited) limit_window(socket_.get(), bytes);
}

void Stream::drop(std::uint64_t number) {
  if (!in_body_ || incoming_.header.type != FrameType::data) return;
  if (incoming_.header.number == number) landing_ = nullptr;
}

void Stream::finish(Deadline limit) {
  if (!socket_ || ended_) return;
  payloads_.clear();
  const StreamHandlers nobody{.frame = [](const FrameHeader&, std::span<const std::byte>) {},
                              .landing = [](const FrameHeader&) { return std::span<std::byte>(); },
                              .landed = [](const FrameHeader&) {}};
  while (Clock::now() < limit && !ended_) {
    write();
    if (!is_behind()) break;
    pollfd entry{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&entry, 1, 10);
  }
  if (tls_ && !ended_) tls_->finish();
  ::shutdown(socket_.get(), SHUT_WR);
  while (Clock::now() < limit && !ended_ && unacknowledged_bytes(socket_.get()) > 0) {
    pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, 1);
    read(nobody);  // what is unread when it closes would take what was sent with it
  }
}

}  // namespace gossamer
