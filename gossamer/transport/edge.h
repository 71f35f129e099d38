#pragma once
/// Edge: one direction between two workers of one process, where sends meet their receives.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gossamer/transport/link_emulator.h"
#include "gossamer/transport/request_table.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// One send or receive. `state` and `error` are guarded by the mutex of its edge.
struct Operation {
  bool sending = false;
  int rank = 0;
  int peer = 0;
  Tag tag;
  std::span<const std::byte> payload;  ///< of a send
  Owner owner;                         ///< of a payload that may be read in place
  std::span<std::byte> landing;        ///< of a receive
  std::span<const std::byte> content;  ///< of a receive that is done: where its bytes are
  Clock::time_point arrived = {};      ///< of a receive that is done
  Deadline posted;
  Deadline deadline;
  Status::State state = Status::State::pending;
  std::exception_ptr error;
};

/// What the two ends of a closed edge are told.
struct CloseReasons {
  Failure to_sender;
  Failure to_receiver;
};

/// Note [Copy once]: whoever posts the second of a send and its receive copies the payload, outside
/// of all locks. The pair is done when it is copied and, over emulated links, has arrived; its
/// journey starts when the send is posted, as if the payload waited in the network's buffers, and
/// a receive posted after that finds it there. An operation that ends early leaves the other side
/// as if it had never been posted. Who ends an operation waits for a copy in progress. Where the
/// edge lends, a payload with an owner is not copied at all, see Note [Lent payloads].
///
/// Functions that return bool tell whether an operation ended, so that both workers are to be
/// woken.
class Edge {
 public:
  /// `emulator` is null without emulation.
  Edge(int from, int to, LinkEmulator* emulator, Lends lends)
      : from_(from), to_(to), emulator_(emulator), lends_(lends) {}

  /// Throws std::invalid_argument when an operation with the same tag is pending on this side.
  bool post(const std::shared_ptr<Operation>& operation);
  /// The flight of the send with this tag has arrived.
  bool arrive(Tag tag, FlightId flight);
  /// Fails the operation if it is pending and its deadline is not after `now`.
  bool expire(Operation& operation, Deadline now);
  /// Takes the operation back if it is pending; afterwards its buffer is not touched. Ends the send
  /// whose payload a receive was lent, which is when it returns true.
  bool release(Operation& operation);
  /// Fails what is pending, and all that is posted later. The first reasons count.
  bool close(const CloseReasons& reasons);

  Status status(const Operation& operation) const;
  struct Traffic {
    bool used = false;
    std::int64_t bytes = 0;  ///< of the payloads that were received
  };
  Traffic traffic() const;

 private:
  /// A send, its receive, or both; stays until both have ended.
  struct Match {
    std::shared_ptr<Operation> send;
    std::shared_ptr<Operation> receive;
    FlightId flight = 0;
    bool arrived = false;
    bool copying = false;
    bool copied = false;
    bool lent = false;  ///< instead of copied
  };
  using Lock = std::unique_lock<std::mutex>;

  bool meet(Lock& lock, Match& match);
  bool finish_if_ready(Match& match, Tag tag);
  bool give_back(const Operation& receive);
  void wait_for_copy(Lock& lock, const Operation& operation);
  void withdraw(Operation& operation);
  void fail(Operation& operation, const Failure& failure, Deadline now) const;

  const int from_;
  const int to_;
  LinkEmulator* const emulator_;
  const Lends lends_;
  mutable std::mutex mutex_;  // guards all below, and the state of the operations
  std::condition_variable copied_;
  std::map<Tag, Match> matches_;
  std::optional<CloseReasons> closed_;
  Traffic traffic_;
  int copies_in_progress_ = 0;
};

}  // namespace gossamer
