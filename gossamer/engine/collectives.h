#pragma once
/// Blocking operations over all workers, for start-up, evaluation and checkpoints. Every worker
/// must call them in the same order.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/dtype.h"
#include "gossamer/engine/council.h"
#include "gossamer/engine/exchange_runner.h"
#include "gossamer/engine/seating.h"

namespace gossamer {

/// Note [Settled means]: replicas that average their gradients have to step with the same means.
/// When somebody dies while these are exchanged, some may have them and others may not. So all that
/// are left agree who they are before anybody uses them. Where that is whom the exchanges were
/// over, nobody has lost anybody, and they have ended well everywhere. Else the means are made
/// again, over those that are left. It takes two rounds of small messages between all.
///
/// Note [Sums that begin anew]: where a pattern keeps a sum over all workers, such as that of the
/// corrections, which is 0, one worker takes its share of it along. So all that are left agree
/// likewise, in each step. In the step in which somebody is lost or comes back, what the pattern
/// keeps begins anew on all of them, after they have stepped, and with it the sum. From then on the
/// rounds are formed over those that are left. What is under way already is not: there edges of the
/// lost are off, and that makes the sum no other, since what was kept is 0 and stays at home.

/// Runs collectives of one worker over its runner. Each is over all workers or, once
/// go_on_without() has been called, over those that are left; see Note [Who takes part].
class Collectives {
 public:
  /// `first_call`: more than others on the same transport will ever have made.
  Collectives(ExchangeRunner& runner, Seating seating, std::int64_t first_call = 0)
      : runner_(runner),
        seating_(std::move(seating)),
        calls_(first_call),
        circle_({seating_, tree_of(seating_)}) {}

  /// From now on losing somebody is no error. Both must outlive this.
  void go_on_without(LostPeers& lost, Lookout& lookout);
  /// All that take part have done so many steps. Then who has come back is in step with the others,
  /// where losing somebody is no error.
  void at_step(std::int64_t steps);
  /// This worker has come back: it begins alone.
  void come_back() { has_come_back_ = true; }
  bool has_come_back() const { return has_come_back_; }

  /// into = mean over workers of from, the same bits everywhere; hierarchical. The two may be the
  /// same memory. `count` elements of `dtype`.
  void mean(DType dtype, const void* from, void* into, std::int64_t count);
  void mean(std::span<double> values) {
    mean(DType::f64, values.data(), values.data(), std::ssize(values));
  }
  /// Gives everybody the bytes of the first worker, along a binary tree.
  void broadcast(std::span<std::byte> bytes);
  /// The same for a text, of any length.
  void broadcast(std::string& text);
  /// What each worker says, by position; of any length. Along a binary tree up and down. Of those
  /// that are lost nothing.
  std::vector<std::string> gather(const std::string& own);
  /// Returns once every worker has called it.
  void barrier();

  /// All exchanges of means number `number`, over the workers of `among`, have ended here. Where
  /// somebody of these is lost, or begins with this step, `again` makes the means once more; it may
  /// be called several times. Returns over whom they are now. See Note [Settled means].
  Seating settle(std::int64_t number, const Seating& among, const std::function<void()>& again);
  /// Within `again`: as mean(), in a stream of its own.
  void mean_among_those_left(DType dtype, const void* from, void* into, std::int64_t count,
                             std::int32_t stream);
  /// Within `again`: to and from one of them, once.
  void send_text(int peer, const std::string& text);
  std::string receive_text(int peer);

  /// Of all workers, those that are lost among them.
  const Seating& seating() const { return seating_; }
  /// The ranks that took part in the last one, or, within `again` of settle(), that are left.
  std::vector<int> took_part() const;
  /// Between calls, as often as one likes: see Note [Who takes part].
  void answer_late() {
    if (council_) council_->answer_late();
  }
  int rank() const { return seating_.rank(); }
  int workers() const { return seating_.workers(); }
  const HostShape& shape() const { return seating_.shape; }

 private:
  /// Who takes part in an attempt.
  struct Circle {
    Seating seating;
    Tree tree;
    std::int64_t call = 0;
  };

  template <class Work>
  void among_those_left(std::int64_t call, const Work& work);
  template <class Work>
  void among_those_left(const Work& work) {
    among_those_left(calls_++, work);
  }
  void broadcast_once(std::span<std::byte> bytes, std::int32_t slot);
  void broadcast_once(std::string& text, std::int32_t slot);
  void wait(Exchange& exchange);
  void while_waiting();
  void finish(Request request, std::span<std::byte> landing = {});

  ExchangeRunner& runner_;
  const Seating seating_;
  std::int64_t calls_;
  std::int64_t steps_ = 0;
  bool has_come_back_ = false;
  Circle circle_;
  std::unique_ptr<Council> council_;  ///< null: all take part
};

}  // namespace gossamer
