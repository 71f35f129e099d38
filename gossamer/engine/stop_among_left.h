#pragma once
/// StopAmongLeft: a last step for the workers that are left, whoever is lost meanwhile.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <vector>

#include "gossamer/engine/stop_talk.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [A last step without the lost]: a worker may die when it has told its bid to some, and the
/// others still have to do equally many steps. So each tells all others what it knows, which are
/// the bids and who has gone, and tells it again whenever it knows more. Of one that has gone,
/// whoever has found it out, nothing more is taken in. Once all that have not gone are known to
/// have said the same, with a bid of each of them, all know all bids that will ever count: whoever
/// had said it takes in no others. Their maximum is the last step. It does not matter what they say
/// after that, when more have gone. Whoever knows the last step says it, too: another one may have
/// heard of a death before it had heard all.
///
/// Each worker sends n − 1 small messages each time it knows more, as a rule 3 or 4 times.
///
/// Who is taken for gone and lives hears it from the others, and does not stop with them.
class StopAmongLeft final : public StopTalk {
 public:
  /// Expects news from all others. The transport must outlive this.
  explicit StopAmongLeft(Transport& transport);
  /// The others have got what they need to know the last step, too, if they still live.
  ~StopAmongLeft() override;
  StopAmongLeft(const StopAmongLeft&) = delete;
  StopAmongLeft& operator=(const StopAmongLeft&) = delete;

  int hear() override;
  void begin(std::int64_t bid, int signal) override;
  std::optional<std::int64_t> last_step() const override;
  std::exception_ptr lost() const override;

 private:
  /// What a worker knows: a signal, the bid of each worker or −1, 1 for each that has gone, and the
  /// last step or −1. Each number only ever grows.
  using Known = std::vector<std::int64_t>;

  struct Other {
    int rank = 0;
    Request receive = 0;  ///< of what it says next; 0: it has ended
    Known landing = {};
    std::vector<Known> said = {};
    std::optional<std::uint64_t> generation = {};  ///< of which something may come
    Deadline next_try = {};
  };
  struct Saying {
    Known known;
    std::vector<Request> sends = {};
  };

  /// Where they stand in it.
  std::size_t bid_of(int rank) const;
  std::size_t gone(int rank) const;
  void expect(Other& other);
  void hear(Other& other);
  void say();
  bool have_all_said(const Known& known) const;
  void decide();
  void deliver();

  Transport& transport_;
  const int rank_;
  std::vector<Other> others_;  ///< by rank; this worker says nothing to itself
  Known known_;
  bool has_begun_ = false;
  std::deque<Saying> sayings_;
};

}  // namespace gossamer
