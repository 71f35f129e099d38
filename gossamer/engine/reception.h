#pragma once
/// Reception: what a worker that comes back asks, and how it is answered.

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

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

/// Whether two of AdmissionWord::there are, as far as both say it.
bool are_equal(std::uint64_t one, std::uint64_t other);

std::span<std::byte> bytes_of(AdmissionWord& word);

/// What is said about a question. Of a generation that has been replaced nothing is taken for its
/// successor's, whose connection it may go over.
enum class About : std::int32_t { question, answer, state };
Tag tag_of(About about, std::uint64_t generation, std::int64_t number);

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

}  // namespace gossamer
