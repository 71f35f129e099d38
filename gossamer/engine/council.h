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
/// knows only whom itself has lost. So each tells all that it can talk to, in rounds, who has lost
/// whom, as far as it knows: a round in which everybody has said the same, and nobody was lost,
/// decides. Each further round knows of at least one more pair. Who is left is then a function of
/// what all know, see left(): whoever is lost by the most of the others is left out first, so a
/// worker that many have given up leaves, and not those. One that lives and is left out knows it,
/// or is told by all others, and ends.
///
/// The call may then fail for one of them, because somebody dies in it. It begins the next round;
/// the others hear of that while they wait, and begin it, too. Nobody leaves the call before it has
/// heard that all have their result. If somebody that may live is lost before it has said so,
/// another round begins, too; whoever had heard it has left, and answers that the call is over for
/// all: see answer_late(). Nobody coordinates it, and it goes over the connections that are there:
/// n − 1 small messages for each round and each worker.
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
  /// Begins a call, or begins it again: who takes part, unless is_over(). Throws TransportError
  /// where this worker is left out or cut off, or another one is late.
  Seating begin(std::int64_t call);
  /// Begun again in vain: all had their result, this worker, too.
  bool is_over() const { return is_over_; }
  /// How often this call has been begun before.
  int attempt() const { return round_; }
  /// In the middle of it, as often as one likes: throws CallBegunAnew.
  void check();
  /// This worker has its result; whether all have, else it is to be begun again.
  bool end();

  /// Those who have begun the last call again hear that it is over. As often as one likes, and
  /// until the next call has ended.
  void answer_late();

  /// The same for those who do something else meanwhile: open(), decides() until it is true, which
  /// gives seating(), say_result() unless is_over(), ends() until it is not `open`.
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
  /// A bit for each pair: whether the one has lost the other. Equal words, equal knowledge.
  using Losses = std::vector<std::uint64_t>;
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
    bool has_ended = false;  ///< the peer: it needs nothing more
  };
  using Messages = std::deque<Message>;

  Messages expect(int slot);
  Message to(int peer, std::int64_t call, int slot);
  Messages say(int slot);
  bool collect(Message& message);
  bool collect(Messages& messages);
  bool hears_of_another_round(const Messages& results);
  void begin_round();
  bool agree();
  bool hears_that_it_is_over();
  void keep_answering(std::int64_t call, int round, Messages unasked);
  void lose(int peer, const std::exception_ptr& error);
  bool is_away(int rank) const;
  bool has_lost(int by, int lost) const;
  void note(int by, int lost);
  void forget(int rank);
  void leave_out_others();
  void count_in(const std::vector<int>& peers, Standing standing);
  std::vector<int> left() const;
  [[noreturn]] void fail_left_out() const;
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
  std::vector<int> peers_;   ///< of this round; once it has decided, those that are left
  Losses before_;            ///< what was known when it began
  Messages heard_;           ///< in it, and then results
  Messages said_;            ///< likewise
  Messages next_;            ///< of the next round, of those who begin the call again
  bool has_result_ = false;  ///< of this call, in a former round
  bool is_over_ = false;
  std::vector<int> result_peers_;  ///< who took part in it
  Messages overs_;                 ///< that the call is over, from those who begin no round
  std::int64_t kept_call_ = -1;    ///< the last one that has ended
  int kept_round_ = 0;             ///< that others may begin of it
  Messages kept_;                  ///< from those who do
  Messages answers_;
  Deadline next_answers_ = {};
  Deadline deadline_;
};

}  // namespace gossamer
