#pragma once
/// One Plan on its way over a Transport.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/aligned_bytes.h"
#include "gossamer/base/dtype.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/overlap.h"
#include "gossamer/engine/recorder.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Called now and then by a thread that waits; may throw, which ends the wait.
using WhileWaiting = std::function<void()>;

/// Whoever waits looks again at least this often.
inline constexpr std::chrono::milliseconds kLongestNap{50};

/// When a wait of `seconds` that begins now must have ended.
Deadline deadline_after(double seconds);

/// Scratch for one Plan at a time: its buffers one after the other, cache-line aligned.
class Arena {
 public:
  static std::size_t bytes_for(const Plan& plan, DType dtype);
  /// Uses memory of `owner` from now on, where peers may read in place what an exchange sends from
  /// there; then no exchange may start before wait_all_back() of the last one.
  void use(Owner owner, std::span<std::byte> memory);
  /// Makes room for the scratch buffers of `plan`; grows only, into memory of its own.
  void fit(const Plan& plan, DType dtype);
  std::byte* buffer(int index) const { return starts_[at(index)]; }
  const Owner& owner() const { return owner_; }

 private:
  Owner owner_;
  AlignedBytes own_;
  std::span<std::byte> memory_;
  std::vector<std::byte*> starts_;  ///< by buffer index; [0] (the payload) unused
};

/// Writes elements [offset, offset + count) of a payload.
using ReadPayload = std::function<void(std::int64_t offset, std::int64_t count, std::byte* into)>;
/// Whether a payload that comes from a device is there; called from any thread, may throw.
using IsReady = std::function<bool()>;

/// What an exchange sends: the elements of its Plan's buffer 0. They must not change before the
/// exchange has ended or, with an owner, before wait_all_back() has returned.
struct PayloadRef {
  const void* data = nullptr;
  /// In place of `data`, for Plans that only code it (codes_payload_only). Done with, and let go,
  /// when ExchangeRunner::start() returns.
  ReadPayload read = nullptr;
  const void* lent = nullptr;  ///< a copy to send instead; null: none
  Owner owner = nullptr;       ///< given if peers may read in place, see Note [Lent payloads]
  IsReady is_ready = nullptr;  ///< nothing is sent before; null: it is there
};

/// What an exchange works with. Plan and arena must outlive it.
struct ExchangeSpec {
  const Plan* plan = nullptr;
  DType dtype = DType::f32;
  Arena* arena = nullptr;
  std::int64_t step = 0;
  std::int32_t stream = 0;
  void* error = nullptr;         ///< of the coding, as long as the payload; null: not carried on
  bool checks = false;           ///< whether what arrives must be finite
  Recorder* recorder = nullptr;  ///< is told of its messages; null: nobody is
  std::optional<std::int64_t> recorded_step = std::nullopt;  ///< that it is told; else `step`
  LostPeers* lost = nullptr;  ///< it goes on without those; null: each one ends it with an error
  /// The steps done before that of the exchange, for edges that are off until then; −1: those that
  /// ever were stay off.
  std::int64_t steps_before = -1;
};

class ExchangeRunner;

/// One Plan under way. Note [Exchange state]: `mutex_` guards everything below it; `advance` is
/// called by the launching thread, by the one that waits and by the runner's. Only a Plan of
/// several phases, or a payload that is not there yet, needs the runner: else there is nothing to
/// do between posting and waiting, and waking a thread would cost more than the exchange.
///
/// Note [Receive early]: receives may be posted long before the payload that this worker sends is
/// ready. A peer that sends then finds the landing buffer and copies while its payload is still in
/// its cache. Until start() there is no deadline: nobody waits yet.
class Exchange {
 public:
  /// Posts the receives of the first phase.
  Exchange(Transport& transport, const ExchangeSpec& spec, const WhileWaiting& while_waiting);
  ~Exchange();

  /// The payload is ready to be sent. From now on the exchange must end within `timeout_s`.
  void start(const PayloadRef& payload, double timeout_s);
  /// Does whatever can be done without waiting; true once the exchange has ended.
  bool advance();
  /// Blocks until it has ended; rethrows what went wrong.
  void wait();
  /// Ends it, if it has not ended: nothing of the plan and the arena is used any more.
  void give_up();
  /// Gives back what peers lent; to be called once what arrived has been read.
  void finish();
  /// Copies what peers lent and gives it back, so that they need not wait for finish().
  void take_over();
  /// Waits until peers have given back what was lent to them; afterwards the payload may change.
  void wait_all_back() { wait_all_back(deadline_after(timeout_s_)); }
  /// Before this worker leaves: the same; what is lost with a peer, or late, is no concern of it.
  void wait_until_given(Deadline deadline) {
    try {
      wait_all_back(deadline);
    } catch (const TransportError&) {
    }
  }
  /// Whether they have; throws once `deadline` has passed.
  bool is_all_back(Deadline deadline);
  /// Where the elements of a slice are, or of a coded buffer the bytes; after wait(), until
  /// finish().
  const std::byte* at(const Slice& slice) const;
  /// Likewise, by buffer of the Plan.
  std::span<const std::byte* const> buffers() const { return bases_; }
  /// Once it has ended: by buffer, whether it has not come, see Note [Without the lost].
  const std::vector<char>& missing() const { return is_missing_; }
  /// Once it has ended: whether nothing can be made of it, so that this worker keeps its own.
  bool is_spoiled() const { return is_spoiled_; }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// Whether its payload is not there yet, so that no event of the transport will wake anybody.
  bool awaits_payload() const { return awaits_payload_.load(std::memory_order_acquire); }
  /// From start() until the last payload had arrived; empty where nothing was to be received.
  Interval journey() const { return {started_at_, arrived_}; }

 private:
  friend class ExchangeRunner;
  struct Open {
    Request request = 0;
    int peer = 0;
    std::byte* landing = nullptr;  ///< of a receive
    int buffer = -1;               ///< of a receive that fills a whole scratch buffer
    std::int32_t slot = 0;
    std::size_t bytes = 0;
    Codec codec = Codec::fp32;  ///< of what arrives
    bool refuses = false;       ///< of a send: empty in place of what cannot be made
  };

  void wait_all_back(Deadline deadline);
  bool needs_runner() const { return by_runner_; }
  bool has_payload();
  Tag tag(std::int32_t slot) const { return {spec_.step, spec_.stream, slot}; }
  void post_receives();
  void code();
  void code(const Coding& coding, std::byte* kept, std::int64_t begin, std::int64_t count,
            const std::byte* from);
  void post_sends();
  void check_deadline(Deadline deadline) const;
  void check_device_deadline() const;
  [[noreturn]] void fail_late(int peer, const std::string& operation, const std::string& why) const;
  bool collect(std::vector<Open>& open);
  bool has_ended(const Open& entry);
  void take(const Open& entry, const Status& status);
  bool is_off(int peer) const;
  void miss(int buffer);
  void pass_over(const Open& entry, const std::exception_ptr& error);
  void add_up();
  void make_own(int buffer);
  void step_phases();
  void end(std::exception_ptr error);
  void release_all();

  Transport& transport_;
  const ExchangeSpec spec_;
  const WhileWaiting while_waiting_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> awaits_payload_ = false;
  bool by_runner_ = false;  ///< since start()

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const std::byte*> bases_;  ///< where each buffer is, in place or in the arena
  std::size_t phase_ = 0;
  bool started_ = false;
  bool sent_ = false;  ///< the sends of this phase are posted
  PayloadRef payload_;
  double timeout_s_ = 0;
  Clock::time_point started_at_;
  Clock::time_point arrived_ = {};
  Deadline deadline_ = Deadline::max();
  std::vector<Open> sends_;
  std::vector<Open> lent_;  ///< sends whose payload has an owner: the end does not wait for them
  std::vector<Open> receives_;
  std::vector<Open> borrowed_;    ///< finished receives whose payload is in the sender's memory
  std::vector<char> is_missing_;  ///< by buffer
  bool is_spoiled_ = false;
  std::exception_ptr error_;
};

}  // namespace gossamer
