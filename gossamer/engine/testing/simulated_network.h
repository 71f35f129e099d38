#pragma once
/// For tests: a network between simulated workers, which loses, delays and parts as a real one may.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossamer/base/clock.h"
#include "gossamer/base/rng.h"
#include "gossamer/transport/net/newcomers.h"
#include "gossamer/transport/net/silence_watch.h"
#include "gossamer/transport/request_table.h"
#include "gossamer/transport/transport.h"

namespace gossamer::simulation {

using Time = Clock::time_point;
using Duration = Clock::duration;

inline Duration seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

struct NetworkOptions {
  Duration latency = std::chrono::microseconds(200);   ///< of a message, at the median
  Duration longest_silence = std::chrono::seconds(5);  ///< as NetOptions
  std::optional<int> least_heard = 0;                  ///< likewise
  /// Workers that come back within so long of each other know only each other's former lives.
  Duration strangers_for = Duration::zero();
  /// Workers that do not begin with the others: their first life is of generation 1.
  std::set<int> late = {};
};

/// A send or a receive.
struct Post {
  bool sending = false;
  int rank = 0;
  int peer = 0;
  Tag tag = {};
  std::vector<std::byte> payload = {};  ///< of a send
  std::span<std::byte> landing = {};    ///< of a receive
  Time posted = {};
  Deadline deadline = {};
  Status::State state = Status::State::pending;
  std::exception_ptr error = {};
  Time arrived = {};
};

/// What one process says to another one.
struct Message {
  enum class Kind { hello, offer, done, refused, withdrawn, ending };
  Kind kind = Kind::offer;
  int from = 0;
  int to = 0;
  std::uint64_t from_generation = 0;
  std::uint64_t to_generation = 0;
  Request request = 0;  ///< of the sender of the payload
  Tag tag = {};
  std::vector<std::byte> payload = {};
  std::optional<Failure> failure = {};
  bool ends_sends = false;  ///< of `ending`: those of the receiver
  bool ends_receives = false;
};

/// Of one of which nothing has been heard for long.
inline constexpr const char* kSilent = "the peer has been silent";

/// What one process knows of another worker.
struct View {
  std::uint64_t generation = 0;
  std::optional<Failure> sends_ended = {};
  std::optional<Failure> receives_ended = {};
  std::map<Tag, Request> sends = {};
  std::map<Tag, Request> receives = {};
  std::map<Tag, Message> offers = {};  ///< that nobody has asked for yet
  bool is_used = false;
  bool was_silent = false;
  Time last_seen = {};
  Time suspected_at = {};
};

/// One life of a worker: the state of its transport.
struct Process {
  Process(int own_rank, std::uint64_t own_generation, int workers, const NetworkOptions& options)
      : rank(own_rank),
        generation(own_generation),
        views(static_cast<std::size_t>(workers)),
        newcomers(static_cast<std::size_t>(workers)),
        silences(options.longest_silence, options.least_heard) {}

  const int rank;
  const std::uint64_t generation;
  Time begun = {};
  std::vector<View> views;  ///< by rank
  Newcomers newcomers;
  SilenceWatch silences;
  std::map<Request, Post> posts;
  Request last_request = 0;
  bool is_over = false;    ///< it has ended, or was killed
  bool is_frozen = false;  ///< it says nothing, and hears nothing
  bool stood_still = false;
  std::deque<Message> stalled;  ///< that have come while it was frozen
};

/// What the simulation does for the network.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual Time now() const = 0;
  virtual Rng& rng() = 0;
  virtual void do_at(Time when, std::function<void()> work) = 0;
  /// Something has happened to this process: it looks soon, if it waits.
  virtual void wake(const Process& process) = 0;
};

/// Note [Simulated network]: it behaves as Transport promises and as the net transport does where
/// more than that counts: payloads wait with their receiver until they are asked for, a send is
/// done when its sender hears that they were; messages of one process to another keep their order;
/// the end of a process is noticed later, by sends and by receives at different times, and what was
/// under way is lost; a frozen or parted process is given up by the rules of SilenceWatch.
class Network {
 public:
  Network(Scheduler& scheduler, int workers, const NetworkOptions& options);

  /// A worker begins, for the first time or again; the former process of its rank is over.
  std::shared_ptr<Process> begin(int rank, std::uint64_t generation);
  /// It is killed: nothing more of it happens.
  void die(Process& process);
  /// It leaves, and says so.
  void leave(Process& process);
  void freeze(Process& process);
  void thaw(Process& process);
  /// Nothing travels between these and the others, until mend().
  void part(std::set<int> ranks);
  void mend();

  Request post(Process& process, Post post);
  Status poll(Process& process, Request request);
  void release(Process& process, Request request);
  void close(Process& process, int peer, const char* here, const char* told);
  /// Fails what is due; whether anything was.
  bool expire_due(Process& process);
  Deadline next_deadline(const Process& process) const;

 private:
  View& view(Process& process, int peer) { return process.views[static_cast<std::size_t>(peer)]; }
  bool are_parted(int a, int b) const { return parted_.contains(a) != parted_.contains(b); }
  Duration delay();
  void say(Process& process, Message message);
  void travel(Message message, Duration takes);
  void arrive(Message message);
  void hear(Process& process, Message& message);
  void greet(Process& process, const Message& message);
  void take(Process& process, Request request, Message& offer);
  void fail(Process& process, Request request, const Failure& failure);
  void end(Process& process, int peer, bool sends, bool receives, const Failure& failure);
  void notice_end(int rank, int of, std::uint64_t of_generation, bool sends, bool receives);
  void beat(const std::shared_ptr<Process>& process);

  Scheduler& scheduler_;
  const NetworkOptions options_;
  std::vector<std::shared_ptr<Process>> processes_;  ///< by rank, the latest; null: none yet
  std::vector<std::vector<Time>> last_;              ///< by from and to: when the last one comes
  std::set<int> parted_;
  std::deque<Message> held_up_;  ///< by the parted network
};

}  // namespace gossamer::simulation
