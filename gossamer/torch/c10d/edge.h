#pragma once
/// C10dEdge: the requests between this worker and one peer, and the frames they lead to.

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "gossamer/torch/c10d/frame.h"
#include "gossamer/transport/request_table.h"
#include "gossamer/transport/transport.h"
#include "gossamer/transport/wake_up.h"

namespace gossamer {

/// One send or receive. What follows `deadline` is guarded by the mutex of its edge.
struct C10dOperation {
  bool sending = false;
  int rank = 0;
  int peer = 0;
  Tag tag;
  std::span<const std::byte> payload;  ///< of a send
  std::span<std::byte> landing;        ///< of a receive
  Deadline posted;
  Deadline deadline;
  Status::State state = Status::State::pending;
  std::exception_ptr error;
  Clock::time_point ended = {};
  std::uint64_t id = 0;   ///< of the receive; of a send: the receive it goes to, 0 for none yet
  std::size_t moved = 0;  ///< bytes put into frames, or taken from them
  bool copying = false;   ///< outside of the lock, by the thread that writes or reads
};

/// One worker's end of an edge; the other end is in another process. Three parties use it: any
/// thread posts, expires and cancels; one thread takes the frames to be written; one thread hands
/// over the frames that came. Both ends of an edge are the same. Note [Receivers ask].
class C10dEdge {
 public:
  using OperationPtr = std::shared_ptr<C10dOperation>;

  /// `wake_up` is notified when an operation ended.
  C10dEdge(int rank, int peer, std::shared_ptr<WakeUp> wake_up);

  /// Throws std::invalid_argument when an operation with the same tag is pending on this side.
  void post(const OperationPtr& operation);
  /// Fails the operation if it is pending and its deadline is not after `now`; true if so.
  bool expire(C10dOperation& operation, Deadline now);
  /// Takes the operation back if it is pending; afterwards its buffer is not touched.
  void cancel(C10dOperation& operation);
  Status status(const C10dOperation& operation) const;
  /// Fails what is pending and all that is posted later, and tells the peer. `leaving`: because
  /// this worker's transport ends. The first reason counts.
  void close(bool leaving);
  /// The link is broken: as close, but the peer cannot be told.
  void break_off(const std::string& reason);

  /// Blocks until there is a frame to write; false when there will be none any more.
  bool await_frame();
  /// Writes the next frame into `frame` (kFrameBytes long); its size, 0 when there is none now.
  std::size_t take_frame(std::span<std::byte> frame);
  /// Takes in a frame of the peer. Throws std::runtime_error for one that makes no sense.
  void hand_over(std::span<const std::byte> frame);
  /// The peer has written its last frame.
  bool peer_closed() const;

  struct Traffic {
    bool used = false;
    std::int64_t sent = 0;
    std::int64_t received = 0;
  };
  Traffic traffic() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Wanted {
    std::uint64_t id = 0;
    std::uint64_t size = 0;
  };

  void match(Tag tag);
  void refuse(std::uint64_t id, std::uint64_t sent_bytes);
  void call_back(Tag tag, std::uint64_t id);
  void land(Lock& lock, const C10dFrameHeader& header, const std::byte* data);
  std::size_t take_data(Lock& lock, std::span<std::byte> frame);
  void copy_unlocked(Lock& lock, C10dOperation& operation, std::byte* to, const std::byte* from,
                     std::size_t bytes);
  void withdraw(C10dOperation& operation);
  void end_all(Lock& lock, const Failure& reason);
  void end(C10dOperation& operation, Status::State state);
  void fail(C10dOperation& operation, const Failure& failure);

  const int rank_;
  const int peer_;
  const std::shared_ptr<WakeUp> wake_up_;
  mutable std::mutex mutex_;  // guards all below, and the state of the operations
  std::condition_variable copied_;
  std::condition_variable frames_;
  std::map<Tag, OperationPtr> sends_;
  std::map<Tag, OperationPtr> receives_;
  std::unordered_map<std::uint64_t, OperationPtr> receives_by_id_;
  std::map<Tag, Wanted> wanted_;         // receives of the peer that no send has met
  std::deque<OperationPtr> transfers_;   // sends that have met a receive, oldest first
  std::deque<C10dFrameHeader> notices_;  // frames without data, written first
  std::uint64_t last_id_ = 0;
  int copies_ = 0;                 // in progress
  std::optional<Failure> closed_;  // why
  bool wrote_close_ = false;
  bool peer_closed_ = false;
  bool broken_ = false;
  Traffic traffic_;
};

}  // namespace gossamer
