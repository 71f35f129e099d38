#pragma once
/// Council: the workers that are left agree on who they are, for a call that all of them make.

#include <cstdint>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include "gossamer/engine/exchange.h"
#include "gossamer/engine/lookout.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/seating.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Another worker has lost somebody in the middle of a call: all begin it again.
struct CallBegunAnew {};

/// Note [Who takes part]: a collective call needs one list of those who take part, and each worker
/// knows only whom itself has lost. So all that are left tell each other, in rounds, whom they have
/// lost: a round in which everybody has said the same, and nobody was lost, decides. Each further
/// round knows of at least one more that is lost, so there are at most as many rounds as workers.
/// Of two that have lost each other and both live, the higher rank is left out, and fails.
///
/// The call may then fail for one of them, because somebody dies in it. It begins the next round;
/// the others hear of that while they wait, and begin it, too. Nobody leaves the call before all
/// that are left have their result. Nobody coordinates it, and it goes over the connections that
/// are there: n − 1 small messages for each round and each worker.
///
/// Who comes back takes part once it has done a step with the others: in a call between two steps
/// nobody knows whether it belongs to the end of the one or to the beginning of the other.
class Council {
 public:
  /// The transport, `lost` and `lookout` must outlive this. `tells`: that a peer has ended is known
  /// to `lost` from then on; else only here.
  Council(Transport& transport, Seating everybody, LostPeers& lost, Lookout& lookout,
          double timeout_s, WhileWaiting while_waiting, bool tells = true);

  /// All have done so many steps: those who come back after them take part again.
  void at_step(std::int64_t steps);
  /// Begins a call, or begins it again: who takes part. Throws TransportError where this worker is
  /// left out or cut off, or another one is late.
  Seating begin(std::int64_t call);
  /// How often this call has been begun before.
  int attempt() const { return round_; }
  /// In the middle of it, as often as one likes: throws CallBegunAnew.
  void check();
  /// This worker has its result; whether all have, else it is to be begun again.
  bool end();

  /// The same for those who do something else meanwhile: open(), decides() until it is true, which
  /// gives seating(), say_result(), ends() until it is not `open`.
  void open(std::int64_t call);
  bool decides();
  Seating seating() const;
  void say_result();
  enum class End { open, all, again };
  End ends();
  /// Between two of these: waits for a moment; throws TransportError timeout_s after begin_wait().
  void begin_wait() { deadline_ = deadline_after(timeout_s_); }
  void wait();

 private:
  /// By rank: who has lost it, the least of those; −1: nobody.
  using Losses = std::vector<std::int32_t>;
  /// What is said to, or heard from, another worker; its request ends with it.
  struct Message {
    Message(Transport& over, int with, Losses said)
        : transport(&over), peer(with), losses(std::move(said)) {}
    ~Message() { release(); }
    Message(Message&& other) noexcept { *this = std::move(other); }
    Message& operator=(Message&& other) noexcept;
    void release();

    Transport* transport = nullptr;
    int peer = 0;
    Losses losses;
    Request request = 0;
    bool has_come = false;
  };
  using Messages = std::deque<Message>;

  Messages expect(int slot);
  Messages say(int slot);
  bool is_to_be_told(const std::exception_ptr& error) const;
  bool collect(Message& message);
  bool collect(Messages& messages);
  bool hears_of_another_round(const Messages& results);
  void begin_round();
  bool agree();
  void lose(int peer, const std::exception_ptr& error);
  std::vector<int> left() const;
  Seating seating_of(const std::vector<int>& ranks) const;

  Transport& transport_;
  const Seating everybody_;
  LostPeers& lost_;
  Lookout& lookout_;
  const double timeout_s_;
  const WhileWaiting while_waiting_;
  const bool tells_;
  Losses losses_;
  std::int64_t steps_ = 0;
  std::int64_t call_ = -1;
  int round_ = 0;
  std::vector<int> peers_;  ///< of this round
  Losses before_;           ///< what was known when it began
  Messages heard_;          ///< in it, and then results
  Messages said_;           ///< likewise
  Messages next_;           ///< of the next round, of those who begin the call again
  Deadline deadline_;
};

}  // namespace gossamer
