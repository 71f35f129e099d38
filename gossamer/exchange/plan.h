#pragma once
/// A Plan: what one worker sends, receives and adds up for one bucket in one round, as plain data.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/codec.h"
#include "gossamer/base/dtype.h"
#include "gossamer/graph/round.h"

namespace gossamer {

/// A contiguous piece of a buffer, in elements. Buffer 0 is the payload (the worker's own
/// parameters or gradients, read only); the others are scratch that the Plan declares.
struct Slice {
  int buffer = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool operator==(const Slice&) const = default;
};

/// One message. `slot` tells messages between the same two workers in one Plan apart.
struct Message {
  int peer = 0;
  int slot = 0;
  Slice slice;
  bool operator==(const Message&) const = default;
};

/// Codes a slice into the whole of a coded scratch buffer; see Note [Who keeps the residual] in
/// kernels/codec.h. With a `kept` of count elements, kept ← own · x + keep · (x − decoded); it may
/// be `from` itself, in scratch. `at` is the place in the payload whose rounding error goes on.
struct Coding {
  Slice from;
  int into = 0;
  Slice kept = {};
  double own = 1;
  double keep = 0;
  std::int64_t at = 0;
  bool operator==(const Coding&) const = default;
};

/// into = scale · Σ terms, added in the order given, coded ones last.
struct Sum {
  Slice into;
  std::vector<Slice> terms;
  double scale = 1;
  bool operator==(const Sum&) const = default;
};

/// Does the codings, posts all receives and sends, waits for the receives, then does the sums.
struct Phase {
  std::vector<Coding> codings = {};
  std::vector<Message> sends = {};
  std::vector<Message> receives = {};
  std::vector<Sum> sums = {};
  bool operator==(const Phase&) const = default;
};

/// weight · slice, a summand of the mix.
struct Term {
  Slice slice;
  double weight = 0;
  bool operator==(const Term&) const = default;
};

/// What the fused pass does with payload elements [offset, offset + count):
/// x ← self_weight · x + Σ terms + d(g).
struct Piece {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  double self_weight = 1;
  std::vector<Term> terms;
  bool operator==(const Piece&) const = default;
};

struct Scratch {
  std::int64_t count = 0;  ///< elements
  bool is_coded = false;
  bool operator==(const Scratch&) const = default;
};

/// Note [Plans]: phases run in order while the worker computes; `pieces` cover the payload without
/// gaps and are what its next fused pass reads. Scratch buffer k (k ≥ 1) is scratch[k − 1]. A
/// receive that fills a whole scratch buffer may be served in place by the transport. Coded buffers
/// are sent, received, summed and mixed as a whole only; what they hold is decoded as it is read.
struct Plan {
  std::int64_t count = 0;     ///< elements of the payload
  Codec codec = Codec::fp32;  ///< of the coded buffers
  std::vector<Scratch> scratch;
  std::vector<Phase> phases;
  std::vector<Piece> pieces;
  bool operator==(const Plan&) const = default;
};

/// All of scratch buffer k ≥ 1.
Slice whole_scratch(const Plan& plan, int k);
bool is_coded(const Plan& plan, const Slice& slice);
/// What a slice takes in memory and on the way, in parameters of this dtype.
std::size_t bytes_of(const Plan& plan, const Slice& slice, DType dtype);
/// Whether payloads are added up on the way, so that none can be left out.
bool adds_up(const Plan& plan);
/// The pieces of a plan that does not add up where W is symmetric and some of its scratch buffers
/// have not come (`is_missing`, by buffer): an edge that is off moves nothing, so what has the
/// weight of a missing payload is this worker's own, coded where that one is.
std::vector<Piece> pieces_without(const Plan& plan, const std::vector<char>& is_missing);
/// The same, of any plan: one that is spoiled keeps this worker's own, cut as before.
std::vector<Piece> pieces_left(const Plan& plan, bool is_spoiled,
                               const std::vector<char>& is_missing);
/// Whether the fused pass reads coded elements.
bool has_coded_terms(const Plan& plan);
/// Whether nothing but the first phase's codings reads the payload.
bool codes_payload_only(const Plan& plan);

/// How a group average is carried out.
enum class GroupMethod {
  hierarchical,  ///< reduce-scatter inside hosts, own shards between hosts, all-gather inside hosts
  direct,        ///< everybody sends everything to everybody in the group
  ring,          ///< flat ring all-reduce in rank order
};

struct PlanOptions {
  GroupMethod group_method = GroupMethod::hierarchical;
  /// Group averages arrive finished: every piece has self_weight 0 and one term of weight 1 (or the
  /// worker is alone). Otherwise the mean of two workers is left to the fused pass.
  bool finished_averages = false;
  /// Every neighbour's payload is a term of its own, also in groups; there is at most one phase.
  bool separate_neighbours = false;
  /// How payloads between hosts are coded. Every worker keeps what its coding left out, so that the
  /// mean over the workers is preserved; with finished_averages it is lost instead, and all members
  /// of a group have the same bits. Needs the hierarchical method.
  Codec codec = Codec::fp32;
};

/// Compiles one worker's part of a round for a payload of `count` elements. Cost: the group's or
/// the neighbourhood's size, plus one pass over the round's rows to find who wants what is sent.
Plan compile(const Round& round, const HostShape& shape, int worker, std::int64_t count,
             const PlanOptions& options = {});

/// Elements that `plan` sends to other hosts and to mates on its own host.
struct Traffic {
  std::int64_t between_hosts = 0;
  std::int64_t inside_host = 0;
  int messages = 0;
};
Traffic traffic(const Plan& plan, const HostShape& shape, int worker);

}  // namespace gossamer
