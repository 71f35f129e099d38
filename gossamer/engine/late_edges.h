#pragma once
/// LateEdges: traffic of a bucket with neighbours for whom nobody waits.

#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "gossamer/base/aligned_bytes.h"
#include "gossamer/base/dtype.h"
#include "gossamer/engine/bucket_traffic.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/recorder.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Late neighbours]: Late::wait, the default, waits in Exchange. With Late::skip a worker
/// that steps takes of each neighbour the newest payload that has come. If that came more than
/// `staleness` of this worker's steps ago, the neighbour's weight goes back to the worker itself
/// for this step: rows of W still sum to 1, columns need not, so the mean over the workers is no
/// longer preserved exactly. The payloads of an edge are numbered; one is sent if the neighbour has
/// taken the one before, else it is left out, so that nothing queues up before a slow neighbour or
/// link. Sums over groups cannot leave anybody out: here their members send to each other directly.
struct LateSpec {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  std::int32_t stream = 0;
  std::int64_t first_number = 0;  ///< the same on all workers, and beyond those used before
  std::int64_t staleness = 1;
  void* error = nullptr;         ///< of the payload's coding, or null
  Recorder* recorder = nullptr;  ///< is told of messages; null: nobody is
  bool checks = false;           ///< whether payloads must be finite
  LostPeers* lost = nullptr;     ///< it goes on without those; null: each one is an error
};
/// Of a bucket's only payload, when others have used numbers up to `first_number`.
LateSpec late_spec(const BucketState& state, const EngineOptions& options,
                   std::int64_t first_number, LostPeers* lost);

class LateEdges final : public BucketTraffic {
 public:
  /// Expects payloads from the workers that `plans`, direct ones for this payload, receive from.
  LateEdges(Transport& transport, const LateSpec& spec, std::span<const Plan* const> plans);
  ~LateEdges() override;

  void expect(const Plan&, std::int64_t) override {}
  /// Sends copies of this worker's only payload to those that the plan names, and waits for nobody.
  void launch(const Plan& plan, std::int64_t step, std::span<const PayloadRef> payloads) override;
  void wait(Until) override {}
  void wait_until_given(Deadline) override {}
  bool is_ready(Deadline) override { return true; }
  /// The newest that has come. Throws TransportError for a neighbour that is lost, where nobody
  /// goes on without it.
  Arrived arrived() override;
  void finish() override {}

  /// Takes what has come and asks for the next. From any thread; errors wait for arrived().
  void collect();

 private:
  struct In {
    std::size_t bytes = 0;
    Codec codec = Codec::fp32;
    Request request = 0;
    std::int64_t number = 0;
    std::array<AlignedBytes, 3> memory;  ///< one lands, one is the newest, one is read
    int landing = 0;
    int newest = -1;
    int current = -1;
    std::int64_t since = 0;  ///< the step at which `current` was taken
    bool is_off = false;     ///< its neighbour is lost
    std::exception_ptr error;
  };
  struct Out {
    Request request = 0;
    std::int64_t number = 0;
    AlignedBytes memory;
    std::size_t bytes = 0;
  };

  Tag tag(std::int64_t number) const;
  void ask(int peer, In& edge);
  void collect(int peer, In& edge);
  std::exception_ptr complaint(std::span<const std::byte> payload, const In& edge, int peer) const;
  bool has_left(Out& edge);
  void end(In& edge, const std::exception_ptr& error);
  void code(const Plan& plan, const PayloadRef& payload);
  void find_newest();

  Transport& transport_;
  const LateSpec spec_;
  std::mutex mutex_;      // guards in_
  std::map<int, In> in_;  ///< by peer
  std::map<int, Out> out_;
  AlignedBytes coded_;  ///< what was sent last, coded
  // What was launched last.
  const Plan* plan_ = nullptr;
  std::int64_t step_ = 0;
  std::vector<const std::byte*> buffers_;  ///< by buffer of the plan; null: it has not come
  std::vector<Piece> pieces_;
};

}  // namespace gossamer
