#pragma once
/// What an engine is told: its buckets, and how they are mixed and stepped.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gossamer/algo/pass.h"
#include "gossamer/base/codec.h"
#include "gossamer/base/dtype.h"
#include "gossamer/engine/device_bucket.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/recorder.h"
#include "gossamer/exchange/method.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/transport/memory.h"

namespace gossamer {

inline constexpr int kNoStep = -1;
inline constexpr int kGap = -2;

/// Elements [offset, offset + count) of a bucket, all of one parameter group.
struct Segment {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  int group = 0;            ///< kNoStep: without a gradient; mixed, but not stepped. kGap: padding
  const void* g = nullptr;  ///< its gradient, where that does not lie in the bucket's
  void* x = nullptr;        ///< its parameters, in a scattered bucket
  std::array<void*, kMaxVectors> state = {};  ///< the optimizer's state vectors, likewise

  bool operator==(const Segment&) const = default;
};

/// A flat piece of the parameters and of their gradients. The memory belongs to the layer above and
/// must outlive the engine. The segments cover the bucket without gaps. With a spare, the owners of
/// both x and spare keep them for peers that still read them, see Note [Two memories].
///
/// Note [Scattered buckets]: without an `x`, each segment says where its parameters and state
/// vectors are, which may be elsewhere in every step, and the owner of the parameters may change
/// them whenever the engine does not run. So what is sent is always a copy y in an outbox, and the
/// mix is by the difference to it: x + Σ_j w_ij (y_j − y_i), which keeps the mean and every change
/// that was made since y was sent.
struct Bucket {
  DType dtype = DType::f32;
  Memory x = {};
  Memory g = {};  ///< is only read
  std::int64_t count = 0;
  std::vector<Segment> segments;
  /// Where the optimizer's state vectors live, in the order of its table row; empty: in the engine,
  /// or in the segments of a scattered bucket.
  std::vector<void*> optimizer_state = {};
  /// The same for the pattern's own state vectors.
  std::vector<void*> pattern_state = {};
  /// Of a scattered bucket with parameters on a device: then the segments say where the correction
  /// is formed, see Note [Parameters on a device]. Must outlive the engine.
  DeviceBucket* device = nullptr;
  Memory spare = {};       ///< room for `count` elements more, or null; see wants_spares()
  std::int64_t every = 1;  ///< mixes in every so many-th step, see Note [Buckets that rest]
  bool is_beside = false;  ///< no parameters: does not count in the disagreement
};

/// Note [Buckets that rest]: a bucket that mixes in every k-th step has the schedule to itself. It
/// follows round n in the step that ends its n-th k steps, and rests in the others, as in a round
/// in which everybody keeps his own.
struct EngineOptions {
  Schedule schedule;
  std::string pattern = "cwa";
  std::string optimizer = "adamw";
  std::vector<Hyper> groups = {Hyper{}};  ///< by Segment::group; may be changed between steps
  UpdateAt update = UpdateAt::step;
  GroupMethod group_method = GroupMethod::hierarchical;
  /// How payloads between hosts are coded; the mean over the workers is preserved.
  Codec codec = Codec::fp32;
  /// Note [Staggered buckets]: bucket b follows the schedule at t + b, so that the traffic of a
  /// time-varying topology is the same in every step. Correct because every parameter sees the same
  /// sequence of rounds, only shifted. Not with schedules that are driven by the loss.
  bool stagger = true;
  Late late = Late::wait;
  std::int64_t staleness = 1;  ///< with Late::skip: steps that a payload may be old
  Lost lost = Lost::error;
  int min_workers = 0;            ///< with Lost::go_on: see may_go_on()
  double clip_norm = 0;           ///< global norm of the gradient that is stepped with; 0: no limit
  bool check_gradients = true;    ///< refuse a non-finite gradient before it touches anything
  bool check_payloads = true;     ///< refuse parameters of others that are not finite
  bool measure_distance = false;  ///< StepReport::distance; costs no memory traffic
  double timeout_s = 60;          ///< of every wait for another worker
  int kernel_threads = 1;
  /// Called now and then while the engine waits; may throw, which ends the wait and the run.
  std::function<void()> while_waiting = nullptr;
  Recorder* recorder =
      nullptr;  ///< for a trace; must outlive the engine; null: nothing is recorded
  /// Names the parameter at an element of a bucket, for messages; may be empty.
  std::function<std::string(int bucket, std::int64_t element)> name_of = nullptr;
};

/// Throws std::invalid_argument for options that do not fit each other.
void check_options(const EngineOptions& options);

/// How its rounds are compiled.
PlanOptions plan_options(const EngineOptions& options);

/// What a step did on this worker.
struct StepReport {
  std::int64_t step = 0;     ///< steps done so far
  double grad_norm = 0;      ///< of the gradient stepped with, before clipping; 0 if not computed
  double exposed_s = 0;      ///< time spent waiting for other workers
  double hidden_s = 0;       ///< time in which payloads were under way without being waited for
  std::int64_t skipped = 0;  ///< neighbours' payloads, by bucket, that it went on without
  std::vector<LostPeer> lost = {};  ///< peers that were lost in it, with Lost::go_on
  std::vector<PeerBack> back = {};  ///< and those that said in it when they come back
  /// Ranks that the rounds are among from now on, where they have been formed anew; else empty.
  std::vector<int> among = {};
  double distance = 0;  ///< ‖x − mixed‖₂ over all buckets, measured inside the fused passes
};

}  // namespace gossamer
