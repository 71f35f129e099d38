#pragma once
/// How a worker that was lost comes back: what those that are there do, and what it does.

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/clock.h"
#include "gossamer/engine/exchange.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/transport/scoped_request.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Coming back]: a worker that has been lost comes back with the same rank as another
/// generation of the transport, see Note [Generations]. It asks all others how far they are, takes
/// the state of one of them, and names a step that all have yet to begin. If all say yes, it is
/// there from that step, for all alike: it takes part in collective calls, and in the next census
/// or settling, which gives it a place in the rounds. Who is there answers between two steps, or
/// while it waits for something else, and waits for nobody. Where one has come too far meanwhile it
/// says no; then the newcomer leaves, and may come back once more. To make that rare it names a
/// step that is as far away as they have lately come in a tenth of a second. Of two that come back
/// at a time the lower rank goes first: it takes the other one for lost, which waits until it is
/// there, or leaves where it has been too late to wait.
///
/// All must take the same workers for lost. A newcomer may have given up one that stood still when
/// it was asked, and that the others hear again: no message passes between these two any more. So
/// it asks again for a moment, since others may notice an end later than it does, and leaves.

/// What a newcomer asks, and what it hears.
struct AdmissionWord {
  enum class Kind : std::int32_t {
    where,
    state,
    begin,
    coming,  ///< an answer: it comes back itself
  };
  Kind kind = Kind::where;
  std::int32_t is_yes = 1;
  std::int64_t steps = 0;   ///< done by who answers, or those before the one to begin with
  std::int64_t bytes = 0;   ///< of the state, which follows
  std::int64_t most = 0;    ///< steps that who answers has lately done in Pace::kSpan
  std::uint64_t there = 0;  ///< code_of() the workers that who says this takes to be there, the
                            ///< newcomer aside; 0: it does not say
};

/// Equal codes, equal workers, whatever their order.
std::uint64_t code_of(const std::vector<int>& ranks);

/// How many steps a worker has lately done in a short time, at most.
class Pace {
 public:
  static constexpr std::chrono::milliseconds kSpan{100};
  void look(std::int64_t steps, Clock::time_point now);
  std::int64_t most() const;

 private:
  Clock::time_point begin_{};  ///< of the span that is counted now
  std::int64_t before_ = -1;   ///< steps done when it began; below 0: none has begun
  std::int64_t in_it_ = 0;
  double most_ = 0;  ///< of earlier ones; a little less with each
};

/// One who asks, and what it has asked last.
struct Guest {
  Newcomer who;
  std::int64_t number = 0;  ///< of questions so far
  Request request = 0;
  AdmissionWord question = {};
  bool waits_for_state = false;
  bool is_lost = false;
};

/// An answer that is under way.
struct AdmissionAnswer {
  int peer = 0;
  AdmissionWord word;
  std::string state;
  std::vector<Request> requests;
};

/// The questions of all guests, and the answers to them.
class Reception {
 public:
  explicit Reception(Transport& transport) : transport_(transport) {}
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// From now on the questions of this generation of a peer are heard, from the first on.
  void open_to(const Newcomer& newcomer);
  /// Also of those that have come since the last call, which are returned; `answer` is called for
  /// each question, and answers it now or later. Those that are lost are forgotten.
  std::vector<Newcomer> look(const std::function<void(Guest& guest)>& answer);
  void answer(Guest& guest, const AdmissionWord& word, std::string state = {});
  std::list<Guest>& guests() { return guests_; }

 private:
  void ask_next(Guest& guest);
  void look(Guest& guest, const std::function<void(Guest& guest)>& answer);
  void release(const AdmissionAnswer& answer);

  Transport& transport_;
  std::list<Guest> guests_;             ///< which stay where they are in memory
  std::list<AdmissionAnswer> answers_;  ///< likewise
};

/// The part of a worker that is there.
class Admission {
 public:
  /// Both must outlive this. `agrees`: those that are there agree on who is, and a newcomer counts
  /// from then on; else at once. See Note [Cut off]. `there`: the ranks that this worker takes to
  /// be there, itself included; null: it does not say.
  Admission(Transport& transport, LostPeers& lost, bool agrees,
            std::function<std::vector<int>()> there = nullptr)
      : transport_(transport),
        lost_(lost),
        agrees_(agrees),
        there_(std::move(there)),
        reception_(std::make_unique<Reception>(transport)) {}
  /// Of a worker that has come back itself: goes on with those who have asked it meanwhile.
  void go_on_with(std::unique_ptr<Reception> reception) { reception_ = std::move(reception); }

  /// Between two steps, after so many: answers what has been asked. The next two steps may have
  /// begun.
  void look(std::int64_t steps);
  /// Who waits for give_state().
  std::vector<int> waiting_for_state();
  /// The state after so many steps; leaves beside the next steps. Empty: it cannot be had here.
  void give_state(int peer, std::int64_t steps, std::string state);

 private:
  std::uint64_t there_without(int guest) const;

  Transport& transport_;
  LostPeers& lost_;
  const bool agrees_;
  const std::function<std::vector<int>()> there_;
  std::unique_ptr<Reception> reception_;
  Pace pace_;
};

/// The part of the newcomer, before it makes its engine. Throws TransportError where nobody is
/// there, or somebody has said no.
class Arrival {
 public:
  /// `preferred`: all other ranks, the one first that the state is best taken from.
  Arrival(Transport& transport, std::vector<int> preferred, double timeout_s,
          WhileWaiting while_waiting);

  /// Of one worker that is there.
  std::string take_state();
  /// The number of steps that all have done when this worker begins with the next one.
  std::int64_t agree_on_start();
  /// Those that are there, once the start is agreed on.
  std::vector<int> there() const;
  /// Those that are not there, to be taken for lost.
  const std::vector<int>& absent() const { return absent_; }
  /// Once the start is agreed on: those who have asked this worker meanwhile.
  std::unique_ptr<Reception> reception() { return std::move(reception_); }

 private:
  struct Host {
    int peer = 0;
    std::int64_t number = 0;
    bool is_there = true;
    bool is_coming = false;  ///< it comes back itself
  };

  /// What all have answered, and how long that took.
  struct Heard {
    std::chrono::duration<double> taken{};
    std::int64_t furthest = 0;  ///< steps done by one of them
    std::int64_t most = 0;      ///< AdmissionWord::most of one of them
    bool agree = true;          ///< with this worker who is there
  };

  /// By peer, of those that are there.
  std::map<int, AdmissionWord> ask_all(const AdmissionWord& question);
  Heard ask_how_far();
  Heard agree_on_who_is_there();
  bool wait_for_those_before();
  bool ask(Host& host, const AdmissionWord& question, AdmissionWord& answer);
  void answer_others();
  void leave_out_absent();
  void leave_out_coming();
  ScopedRequest send(int peer, Tag tag, AdmissionWord& word);
  ScopedRequest receive(int peer, Tag tag, std::span<std::byte> landing);
  bool finish(const Host& host, ScopedRequest request, void* landing);
  void pause();
  [[noreturn]] void fail(const std::string& reason) const;

  Transport& transport_;
  const int rank_;
  const std::uint64_t generation_;
  std::vector<Host> hosts_;
  std::vector<int> absent_;
  std::unique_ptr<Reception> reception_;
  const double timeout_s_;
  const WhileWaiting while_waiting_;
  Deadline deadline_;
};

}  // namespace gossamer
