#pragma once
/// Lookout: which workers this one hears, and whether it may go on without the others.

#include <cstdint>
#include <optional>
#include <vector>

#include "gossamer/engine/lost_peers.h"
#include "gossamer/transport/cut_off.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Keeps a receive open from every other worker, neighbour or not, which nobody serves: it ends
/// with the worker, or where nothing is heard of it. See Note [Cut off].
class Lookout {
 public:
  /// `least`: of may_go_on(). The transport and `lost` must outlive this.
  Lookout(Transport& transport, const LostPeers& lost, int least);
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  /// Between two steps, as often as one likes. Throws TransportError where this worker is cut off.
  void look();
  /// The ranks that it hears or heard until lately, itself included, and who has just been let in.
  std::vector<int> there();
  /// Where somebody was lost: before anything is decided without them.
  void look_now();

 private:
  struct Watch {
    int peer = 0;
    Request receive = 0;
    std::optional<std::uint64_t> generation = {};  ///< of the peer that it was posted for
    bool is_unheard = false;
  };

  void look_at_all();
  void look(Watch& watch);
  Heard heard() const;

  Transport& transport_;
  const LostPeers& lost_;
  const int least_;
  const int rank_;
  std::vector<Watch> watches_;  ///< by rank; nobody watches itself
  bool has_changed_ = false;
  Deadline next_look_ = {};
};

}  // namespace gossamer
