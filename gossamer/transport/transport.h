#pragma once
/// Transport: how bytes get from one worker to another; asynchronous, with a deadline on
/// everything.

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gossamer/base/clock.h"
#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/unheard.h"

namespace gossamer {

/// Matches a send to its receive, together with the two workers. Never used twice for one pair.
struct Tag {
  std::int64_t step = 0;
  std::int32_t stream = 0;  ///< bucket, or what else runs beside it
  std::int32_t slot = 0;
  auto operator<=>(const Tag&) const = default;
};

/// The stream over which newcomers say who they are.
inline constexpr std::int32_t kNewcomers = std::numeric_limits<std::int32_t>::min() + 2;

/// A worker that has come back, as this generation.
struct Newcomer {
  int peer = 0;
  std::uint64_t generation = 0;
};

/// A request of one Transport; 0 is none.
using Request = std::uint64_t;

/// How a request stands. `payload` of a finished receive is where its bytes are: the landing
/// buffer, or memory of the sender that stays valid until release. A failed request has `error`.
struct Status {
  enum class State { pending, done, failed };
  State state = State::pending;
  std::span<const std::byte> payload;
  std::exception_ptr error;
  Clock::time_point arrived = {};  ///< when a finished receive had its bytes
};

/// Brings the payload of a finished receive to its landing buffer, unless it is there already.
inline void land(const Status& status, void* landing) {
  const bool is_elsewhere = !status.payload.empty() && status.payload.data() != landing;
  if (is_elsewhere) std::memcpy(landing, status.payload.data(), status.payload.size());
}

struct EdgeBytes {
  int peer = 0;
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

/// Which payloads with an owner a transport lends to receivers in place.
enum class Lends {
  nothing,
  any_memory,
  shared_memory,  ///< those in SharedMemory
};

struct TransportInfo {
  std::string name;
  int rank = 0;
  int workers = 1;
  Lends lends = Lends::nothing;
  std::vector<EdgeBytes> edges;  ///< payload bytes so far, by peer, only peers talked to
};

/// Keeps memory alive that others may read in place; empty: nobody may.
class Owner {
 public:
  Owner(std::nullptr_t = nullptr) {}
  template <class T>
  Owner(std::shared_ptr<T> memory) : keeps_(std::move(memory)) {
    if constexpr (std::is_same_v<std::remove_const_t<T>, SharedMemory>) {
      shared_ = std::static_pointer_cast<const SharedMemory>(keeps_);
    }
  }
  explicit operator bool() const { return keeps_ != nullptr; }
  /// What workers of other processes can read; null: they cannot.
  const std::shared_ptr<const SharedMemory>& shared() const { return shared_; }

 private:
  std::shared_ptr<const void> keeps_;
  std::shared_ptr<const SharedMemory> shared_;
};

/// Whether a worker is one of those on whose number it depends who may go on; see Note [Cut off].
enum class Standing {
  stranger,  ///< it has come back, and nobody has agreed on it yet
  agreed,    ///< this worker has; others may not know
  counted,   ///< all that go on have
};

/// One worker's end. All functions may be called from any thread. Note [Requests]: every request
/// ends in `done` or `failed` no later than its deadline, provided somebody calls `progress`. A
/// send is done when its payload may be changed; a receive when its bytes are there. Every request
/// must be given to `release`, which cancels it if it is pending; after release its buffer is not
/// touched any more. A cancelled or failed request never disturbs others.
///
/// Note [Lent payloads]: a send with an owner may be lent where the transport does that: the
/// receive is done with the sender's own memory as its payload, and the send when that receive is
/// released, which may be long after; its deadline ends with the lending. A sender that gives up
/// (releases the send, closes, is destroyed) leaves the memory, which must stay as it is, to the
/// owner that the receiver holds.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Starts sending; the payload must not change until the request is done, nor, if it has an
  /// owner, after a release before that.
  virtual Request send(int peer, Tag tag, std::span<const std::byte> payload, Deadline deadline,
                       Owner owner) = 0;
  /// The same for a payload that nobody may read in place.
  Request send(int peer, Tag tag, std::span<const std::byte> payload, Deadline deadline) {
    return send(peer, tag, payload, deadline, nullptr);
  }
  /// Starts receiving exactly landing.size() bytes. A payload of another size fails both sides; an
  /// empty one in place of what the peer expects says that it will not come (Fault::refused).
  virtual Request receive(int peer, Tag tag, std::span<std::byte> landing, Deadline deadline) = 0;
  virtual Status poll(Request request) = 0;
  virtual void release(Request request) = 0;
  /// Moves things along and blocks until a request of this worker ended, another thread posted one
  /// or `until` has come, whichever is first.
  virtual void progress(Deadline until) = 0;
  /// Fails all requests with `peer`, now and later, on this side at once and on the peer's soon.
  virtual void close(int peer) = 0;
  /// The same to a peer some of whose requests have failed as Fault::silent, which is told why. One
  /// that has come back since stays.
  virtual void expel(int peer) { close(peer); }
  /// The same to one that has not failed here: the others go on without it. One that has come back
  /// and is not let in stays.
  virtual void leave_out(int peer) { close(peer); }
  virtual TransportInfo describe() const = 0;
  /// Why `peer` may be late: it has been silent for long, or else the one that has been so for the
  /// longest, of those that this worker talks to. Nothing where all have been heard.
  virtual std::optional<Unheard> unheard(int /*peer*/) const { return {}; }
  /// From now on requests with a worker that comes back as another generation fail until let_in(),
  /// as with its former one, but for those on the stream kNewcomers.
  virtual void hold_back_newcomers() {}
  /// Those that have come back since the last call, in this order.
  virtual std::vector<Newcomer> newcomers() { return {}; }
  /// Unless it has come back as a later generation meanwhile.
  virtual void let_in(const Newcomer&) {}
  /// A worker that has come back, or this one, is one of those on whose number it depends who may
  /// go on; see Note [Cut off]. Until then it is not. Nothing for one that has not been let in.
  virtual void count_in(int, Standing) {}
  virtual Standing standing(int) const { return Standing::counted; }
  /// How often this worker, or a peer as far as this worker knows, has come back.
  virtual std::uint64_t generation(int) const { return 0; }
};

}  // namespace gossamer
