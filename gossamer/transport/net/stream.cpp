#include "gossamer/transport/net/stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "gossamer/transport/net/crc32c.h"
#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {
namespace {

// Small enough that a payload that is stopped does not hold up the others.
constexpr std::size_t kFrameBytes = std::size_t{512} << 10;
constexpr std::size_t kMostText = 1024;
// So that one stream does not keep the others waiting, nor those that wait for the lock.
constexpr std::size_t kBytesAtOnce = std::size_t{512} << 10;
constexpr std::size_t kBytesToWake = std::size_t{128} << 10;

std::uint32_t checksum_of(Words words) {
  words.checksum = 0;
  return crc32c(std::as_bytes(std::span(&words, 1)));
}

bool makes_sense(const Words& words) {
  const std::size_t limit = words.say == Say::data ? kFrameBytes : kMostText;
  return words.magic == Words{}.magic && words.checksum == checksum_of(words) &&
         words.follows <= limit;
}

}  // namespace

void Stream::say(Words words, std::span<const std::byte> text) {
  if (!socket_ || ended_) return;
  last_said_ = Clock::now();
  words.follows = static_cast<std::uint32_t>(text.size());
  words.body = crc32c(text);
  words.checksum = checksum_of(words);
  words_.push_back({.words = words, .own = {text.begin(), text.end()}, .body = {}});
}

void Stream::start(std::uint64_t number, std::span<const std::byte> payload) {
  if (!is_fit_) is_fit_ = fit_buffer(socket_.get());
  payloads_.push_back({.number = number, .bytes = payload});
}

void Stream::stop(std::uint64_t number) {
  std::erase_if(payloads_, [&](const Payload& payload) { return payload.number == number; });
  const bool is_half_way =
      has_frame_ && frame_.words.say == Say::data && frame_.words.number == number;
  if (!is_half_way) return;
  frame_.own.assign(frame_.body.begin(), frame_.body.end());
  frame_.body = frame_.own;
  frame_.is_last = false;
}

bool Stream::next_frame() {
  if (!words_.empty()) {
    frame_ = std::move(words_.front());
    frame_.body = frame_.own;
    words_.pop_front();
    return true;
  }
  if (payloads_.empty()) return false;
  Payload payload = payloads_.front();
  payloads_.pop_front();
  const std::size_t count = std::min(kFrameBytes, payload.bytes.size() - payload.offset);
  const std::span<const std::byte> body = payload.bytes.subspan(payload.offset, count);
  frame_ = {.words = {.say = Say::data,
                      .number = payload.number,
                      .offset = payload.offset,
                      .body = crc32c(body),
                      .follows = static_cast<std::uint32_t>(count)},
            .own = {},
            .body = body};
  frame_.words.checksum = checksum_of(frame_.words);
  payload.offset += count;
  frame_.is_last = payload.offset == payload.bytes.size();
  if (!frame_.is_last) payloads_.push_back(payload);
  last_said_ = Clock::now();
  return true;
}

void Stream::write() {
  std::size_t total = 0;
  while (socket_ && !ended_ && total < kBytesAtOnce) {
    if (!has_frame_) has_frame_ = next_frame();
    if (!has_frame_) break;
    const std::size_t head = std::min(frame_.written, sizeof(Words));
    const std::size_t body = frame_.written - head;
    std::array<iovec, 2> parts = {
        {{reinterpret_cast<std::byte*>(&frame_.words) + head, sizeof(Words) - head},
         {const_cast<std::byte*>(frame_.body.data()) + body, frame_.body.size() - body}}};
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      ended_ = errno != EAGAIN && errno != ENOTCONN && errno != EINPROGRESS;
      if (ended_) error_ = errno;
      break;
    }
    frame_.written += static_cast<std::size_t>(sent);
    total += static_cast<std::size_t>(sent);
    if (frame_.written < sizeof(Words) + frame_.body.size()) continue;
    has_frame_ = false;
    if (frame_.is_last) finished_.push_back(frame_.words.number);
  }
}

/// The words are there; what follows them goes to a landing, is kept as text, or is dropped.
void Stream::begin_body(const StreamListener& listener) {
  if (!makes_sense(heard_)) {
    ended_ = is_spoiled_ = true;
    return;
  }
  in_body_ = true;
  checksum_ = 0;
  left_ = heard_.follows;
  landing_ = nullptr;
  text_.clear();
  if (heard_.say == Say::data) {
    const std::span<std::byte> landing = listener.landing(heard_);
    if (!landing.empty()) landing_ = landing.data();
  } else {
    text_.resize(left_);
    landing_ = text_.data();
  }
  if (left_ == 0) end_body(listener);
}

void Stream::end_body(const StreamListener& listener) {
  in_body_ = false;
  header_ = 0;
  if (checksum_ != heard_.body) {
    ended_ = is_spoiled_ = true;
    return;
  }
  if (heard_.say == Say::data) {
    listener.landed(heard_);
  } else {
    listener.heard(heard_, text_);
  }
}

void Stream::read(const StreamListener& listener) {
  std::array<std::byte, 4096> dropped;
  std::size_t total = 0;
  pauses_ = false;
  while (socket_ && !ended_ && !pauses_ && total < kBytesAtOnce) {
    if (header_ == sizeof(Words) && !in_body_) {
      begin_body(listener);
      continue;
    }
    // What is left of a body, and the next words with it; or what is left of the words.
    const bool drops = landing_ == nullptr;
    const std::size_t body = !in_body_ ? 0 : drops ? std::min(left_, dropped.size()) : left_;
    const bool reads_words = body == left_ || !in_body_;
    Words next = heard_;
    const std::size_t have = in_body_ ? 0 : header_;
    std::array<iovec, 2> parts = {
        {{drops ? dropped.data() : landing_, body},
         {reinterpret_cast<std::byte*>(&next) + have, reads_words ? sizeof(Words) - have : 0}}};
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      ended_ = got == 0 || (errno != EAGAIN && errno != ENOTCONN);
      if (ended_ && got < 0) error_ = errno;
      break;
    }
    last_heard_ = Clock::now();
    std::size_t bytes = static_cast<std::size_t>(got);
    total += bytes;
    if (in_body_) {
      const std::size_t of_body = std::min(bytes, left_);
      const auto* const body_begin = static_cast<const std::byte*>(parts[0].iov_base);
      checksum_ = crc32c({body_begin, of_body}, checksum_);
      left_ -= of_body;
      bytes -= of_body;
      if (landing_ != nullptr) landing_ += of_body;
      if (left_ > 0) continue;
      end_body(listener);
    }
    if (ended_) break;
    heard_ = next;
    header_ += bytes;
  }
  if (socket_ && !ended_ && !pauses_) sleep_through(in_body_ ? std::min(left_, kBytesToWake) : 1);
}

/// Less than so many bytes are no news: for each packet of a body that will come anyway, to wake up
/// costs more than to read it.
void Stream::sleep_through(std::size_t bytes) {
  if (bytes == wanted_) return;
  wanted_ = bytes;
  const int count = static_cast<int>(bytes);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVLOWAT, &count, sizeof(count));
}

void Stream::drop(std::uint64_t number) {
  if (in_body_ && heard_.say == Say::data && heard_.number == number) landing_ = nullptr;
}

void Stream::finish(Deadline limit) {
  if (!socket_ || ended_) return;
  payloads_.clear();
  const StreamListener nobody{.heard = [](const Words&, std::span<const std::byte>) {},
                              .landing = [](const Words&) { return std::span<std::byte>(); },
                              .landed = [](const Words&) {}};
  while (Clock::now() < limit && !ended_) {
    write();
    if (!is_behind()) break;
    pollfd entry{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&entry, 1, 10);
  }
  ::shutdown(socket_.get(), SHUT_WR);
  while (Clock::now() < limit && !ended_ && unacknowledged_bytes(socket_.get()) > 0) {
    pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, 1);
    read(nobody);  // what is unread when it closes would take what was said with it
  }
}

}  // namespace gossamer
