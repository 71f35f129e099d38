#pragma once
/// Whether a worker is cut off from the others, or they from it.

#include <string>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Cut off]: a network that fails parts the workers, and each part hears nothing of the other
/// one. If both went on, there would be two runs, and two results. So those go on that hear more
/// workers, themselves included, than they miss; of two equal halves that one does which has the
/// lowest rank. Who is known to have ended does not count. Two parts that both went on would each
/// hear most of the workers, so some worker would be heard by both, and they would be one part.
///
/// A worker that has come back counts once all that go on have agreed that it is there: others may
/// not know of it, and it would tip the balance for the part that it has come to. Some know that
/// they have agreed before others do, and the network may part them just then. So who has agreed
/// must hear enough workers both with the newcomer and without it, until all have said that they
/// have: then nobody is left who goes by the former number alone.
///
/// Who has been heard is not always easy to tell, see Note [Silence].
///
/// The others wait: they keep what is under way, and go on with it where the network is back before
/// anybody has gone on without them. Else they learn that, and end; they may come back, see
/// Note [Coming back].
///
/// A program may say how many it must hear instead: then several parts may go on, each alone.

/// The workers as one of them hears them, itself included; both ascending. Those that have ended
/// are in neither.
struct Heard {
  std::vector<int> there;
  std::vector<int> unheard;
  /// Newcomers that have been agreed on, which others may not know; see Note [Cut off].
  std::vector<int> new_there = {};
  std::vector<int> new_unheard = {};
};

/// One more worker, of which something has been heard, or nothing; in ascending order.
void add(Heard& heard, int rank, Standing standing, bool is_there);

/// With the newcomers among the others.
Heard together(const Heard& heard);

/// `least`: so many must be there; 0: see Note [Cut off].
bool may_go_on(const Heard& heard, int least);

/// For the user of a worker that others have expelled.
inline constexpr const char* kExpelled =
    "the others go on without this worker, of which they had heard nothing for long; start it "
    "again";

/// What those others say of it.
inline constexpr const char* kLeftOut = "the others go on without it";

/// For the user of one that may not.
std::string why_cut_off(const Heard& heard, int least);

}  // namespace gossamer
