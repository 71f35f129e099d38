#pragma once
/// SilenceWatch: which peers are given up because nothing was heard of them for long.

#include <optional>
#include <span>
#include <vector>

#include "gossamer/base/clock.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// What one worker knows of another one.
struct LastHeard {
  enum class State { there, given_up, gone };
  /// `gone`: it has ended, or was never talked to, and counts neither way. `given_up`: it has been
  /// before, or its connection has ended by its silence; it counts as unheard from then on.
  State state = State::gone;
  Deadline at = {};                       ///< when it last said something, unless it is gone
  Standing standing = Standing::counted;  ///< in may_go_on()
};

/// What is thought of a peer.
enum class Silence { none, suspected, given_up };

/// Note [Silence]: a peer is given up that has said nothing for the longest time allowed. Where a
/// worker waits for others while it is cut off from them (Note [Cut off]), two things are asked
/// beside that. All of them may have been cut off at once, and the quiet ones, last heard a beat
/// earlier, would be given up while the busy ones still count as heard. So a peer is suspected
/// first, and given up only where enough others have said something after that. And once the
/// network is back, each connection says its next word when the system sends again what was lost,
/// after up to as long as the network was away. So who has missed too many is patient for so long.
///
/// A connection that is reset when the network is back says nothing of why: a worker that went on
/// without this one, and has finished, leaves no other trace. So the end of one that was suspected
/// is that of a silent one; and so are all ends where this worker itself has just stood still.
class SilenceWatch {
 public:
  /// `longest`: so long a peer may be silent. `least`: of may_go_on(); none: whoever is silent is
  /// given up, whatever the others are.
  SilenceWatch(Clock::duration longest, std::optional<int> least)
      : longest_(longest), least_(least) {}

  /// As in Transport::unheard(), at the last beat; nothing where that was long ago, since then this
  /// worker has stood still and heard nobody.
  std::optional<Unheard> unheard(int peer, Deadline now) const;
  /// At the last beat it had stood still.
  void forget() { heard_.clear(); }

  /// At a beat, by rank. `heard`: by rank; of the entry of `own` only the standing is read.
  std::vector<Silence> look(std::span<const LastHeard> heard, int own, Deadline now);

 private:
  struct Look;
  void suspect(const Look& look);
  bool is_patient(const Look& look);

  const Clock::duration longest_;
  const std::optional<int> least_;
  std::vector<std::optional<Deadline>> suspected_at_;  ///< by rank
  std::vector<LastHeard> heard_;                       ///< by rank, at the last beat
  Deadline looked_at_ = {};
  std::optional<Deadline> waits_since_;
  Deadline patient_until_ = {};
};

}  // namespace gossamer
