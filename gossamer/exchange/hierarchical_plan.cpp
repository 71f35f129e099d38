#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/exchange/group_plans.h"

namespace gossamer {
namespace {

/// The members of the group on one host, and where each one's shard of the payload lies.
struct HostPart {
  std::vector<int> members;

  ElementRange shard(int index, std::int64_t count) const {
    return part_of({0, count}, index, static_cast<int>(members.size()));
  }
  int owner_index(std::int64_t element, std::int64_t count) const {
    const int parts = static_cast<int>(members.size());
    for (int k = 0; k < parts; ++k) {
      if (element < shard(k, count).end) return k;
    }
    return parts - 1;
  }
  int owner(std::int64_t element, std::int64_t count) const {
    return members[static_cast<std::size_t>(owner_index(element, count))];
  }
};

/// Builds one worker's Plan stage by stage. `partial_` is where this worker finds the sum over its
/// host of its own shard: the payload itself where it is alone on its host.
class Builder {
 public:
  Builder(const std::vector<int>& group, const HostShape& shape, int worker, std::int64_t count,
          const PlanOptions& options)
      : worker_(worker),
        count_(count),
        options_(options),
        scale_(1.0 / static_cast<double>(group.size())) {
    std::map<int, HostPart> by_host;
    for (int member : group) by_host[shape.host_of(member)].members.push_back(member);
    const int own_host = shape.host_of(worker);
    for (auto& [host, part] : by_host) {
      if (host == own_host) host_ = static_cast<int>(hosts_.size());
      hosts_.push_back(std::move(part));
    }
    const std::vector<int>& mates = own().members;
    me_ = static_cast<int>(std::find(mates.begin(), mates.end(), worker) - mates.begin());
    shard_ = own().shard(me_, count);
    plan_.count = count;
    plan_.codec = options.codec;
  }

  Plan build() {
    const bool crosses = hosts_.size() > 1;
    partial_ = {0, shard_.begin, shard_.size()};
    if (mates() > 1) reduce_scatter(crosses ? 1.0 : scale_);
    total_ = partial_;
    if (hosts_.size() == 2) exchange_with_one_host();
    if (hosts_.size() > 2) exchange_with_many_hosts();
    gather();
    return std::move(plan_);
  }

 private:
  const HostPart& own() const { return hosts_[static_cast<std::size_t>(host_)]; }
  int mates() const { return static_cast<int>(own().members.size()); }
  int hosts() const { return static_cast<int>(hosts_.size()); }

  bool codes() const { return options_.codec != Codec::fp32; }

  Slice new_scratch(std::int64_t count, bool is_coded = false) {
    plan_.scratch.push_back({count, is_coded});
    return {static_cast<int>(plan_.scratch.size()), 0, count};
  }
  /// Where something between hosts lands.
  Slice new_landing(std::int64_t count) { return new_scratch(count, codes()); }

  /// What to send in place of `from`, which is payload elements from `at` on. What is to be added
  /// up in place of it, with what its coding leaves out `keep` times, goes to `kept`.
  Slice coded(Phase& phase, const Slice& from, const Slice& kept, std::int64_t at, double keep) {
    if (!codes()) return from;
    const Slice into = new_scratch(from.count, true);
    phase.codings.push_back(
        {from, into.buffer, kept, 1, options_.finished_averages ? -1 : keep, at});
    return into;
  }

  /// The part of this worker's shard that covers `range`, in a buffer that holds the whole shard.
  Slice inside(const Slice& whole_shard, const ElementRange& range) const {
    return {whole_shard.buffer, whole_shard.offset + range.begin - shard_.begin, range.size()};
  }

  void add_phase(Phase phase) { plan_.phases.push_back(std::move(phase)); }

  void reduce_scatter(double scale) {
    Phase phase;
    Sum sum{.into = new_scratch(shard_.size()), .scale = scale};
    for (int k = 0; k < mates(); ++k) {
      const int mate = own().members[static_cast<std::size_t>(k)];
      if (mate == worker_) {
        sum.terms.push_back({0, shard_.begin, shard_.size()});
        continue;
      }
      const ElementRange theirs = own().shard(k, count_);
      if (theirs.size() > 0) {
        phase.sends.push_back({mate, kReduce, {0, theirs.begin, theirs.size()}});
      }
      if (shard_.size() == 0) continue;
      const Slice landing = new_scratch(shard_.size());
      phase.receives.push_back({mate, kReduce, landing});
      sum.terms.push_back(landing);
    }
    partial_ = sum.into;
    if (shard_.size() > 0) phase.sums.push_back(std::move(sum));
    add_phase(std::move(phase));
  }

  /// The own shard, cut wherever another host's shards begin, so that each piece has exactly one
  /// owner on every host.
  std::vector<ElementRange> pieces_of_shard() const {
    std::vector<std::int64_t> cuts{shard_.begin, shard_.end};
    for (const HostPart& host : hosts_) {
      for (int k = 0; k < static_cast<int>(host.members.size()); ++k) {
        const std::int64_t begin = host.shard(k, count_).begin;
        if (begin > shard_.begin && begin < shard_.end) cuts.push_back(begin);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<ElementRange> pieces;
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) pieces.push_back({cuts[k], cuts[k + 1]});
    return pieces;
  }

  /// Slots count pieces in the order of the payload, which is the same on both sides of a pair.
  int next_slot(int peer, std::map<int, int>& used, int stage) const {
    return kStages * used[peer]++ + stage;
  }

  void exchange_with_one_host() {
    const HostPart& other = hosts_[static_cast<std::size_t>(1 - host_)];
    Phase phase;
    std::map<int, int> used;
    // The total takes the place of one of its terms: of what is kept, or else of what comes.
    const bool is_ours = codes() && partial_.buffer != 0;
    total_ = is_ours ? partial_ : new_scratch(shard_.size());
    for (const ElementRange& range : pieces_of_shard()) {
      const int peer = other.owner(range.begin, count_);
      const int slot = next_slot(peer, used, kExchange);
      const double keep = static_cast<double>(other.members.size()) / mates();
      const Slice from = inside(partial_, range);
      const Slice into = inside(total_, range);
      const Slice sent = coded(phase, from, into, range.begin, keep);
      const Slice mine = codes() ? into : from;
      const Slice theirs = codes() ? new_scratch(range.size(), true) : into;
      phase.sends.push_back({peer, slot, sent});
      phase.receives.push_back({peer, slot, theirs});
      const auto terms = host_ == 0 ? std::vector{mine, theirs} : std::vector{theirs, mine};
      phase.sums.push_back({into, terms, scale_});
    }
    add_phase(std::move(phase));
  }

  /// Sends a part of the sum over this host to the owner of that part, and takes the total that
  /// comes back. What the coding left out here goes to this host alone, so that it counts with the
  /// number of its members; finished averages go without.
  void send_part(Phase& reduce, Phase& give_back, int peer, const std::array<int, 2>& slots,
                 const ElementRange& part) {
    const Slice from = inside(partial_, part);
    const Slice into = inside(total_, part);
    if (!codes()) {
      reduce.sends.push_back({peer, slots[0], from});
      give_back.receives.push_back({peer, slots[1], into});
      return;
    }
    const Slice sent = new_scratch(part.size(), true);
    Coding coding{.from = from, .into = sent.buffer, .at = part.begin};
    const Slice landing = new_scratch(part.size(), true);
    Sum sum{.into = into, .terms = {landing}};
    if (!options_.finished_averages) {
      coding.kept = into;
      coding.own = 0;
      coding.keep = 1.0 / mates();
      sum.terms.insert(sum.terms.begin(), coding.kept);
    }
    reduce.codings.push_back(coding);
    reduce.sends.push_back({peer, slots[0], sent});
    give_back.receives.push_back({peer, slots[1], landing});
    give_back.sums.push_back(std::move(sum));
  }

  /// Each piece is cut once more into one part per host; host g's owner of the piece adds up part g
  /// and gives the total back to the owners on the other hosts.
  void exchange_with_many_hosts() {
    Phase reduce;
    Phase give_back;
    std::map<int, int> used_reduce;
    std::map<int, int> used_give;
    total_ = new_scratch(shard_.size());
    for (const ElementRange& piece : pieces_of_shard()) {
      const ElementRange my_part = part_of(piece, host_, hosts());
      Sum sum{.into = inside(total_, my_part), .terms = {}, .scale = scale_};
      Slice given = sum.into;
      if (my_part.size() > 0 && codes()) {
        const double keep = 1 / (scale_ * mates()) - 1;
        given = coded(give_back, sum.into, sum.into, my_part.begin, keep);
      }
      for (int g = 0; g < hosts(); ++g) {
        if (g == host_) {
          sum.terms.push_back(inside(partial_, my_part));
          continue;
        }
        const int peer = hosts_[static_cast<std::size_t>(g)].owner(piece.begin, count_);
        const ElementRange their_part = part_of(piece, g, hosts());
        const std::array<int, 2> slots{next_slot(peer, used_reduce, kExchange),
                                       next_slot(peer, used_give, kGiveBack)};
        if (their_part.size() > 0) send_part(reduce, give_back, peer, slots, their_part);
        if (my_part.size() > 0) {
          const Slice landing = new_landing(my_part.size());
          reduce.receives.push_back({peer, slots[0], landing});
          give_back.sends.push_back({peer, slots[1], given});
          sum.terms.push_back(landing);
        }
      }
      if (my_part.size() > 0) reduce.sums.push_back(std::move(sum));
    }
    add_phase(std::move(reduce));
    add_phase(std::move(give_back));
  }

  void gather() {
    Phase phase;
    for (int k = 0; k < mates(); ++k) {
      const int mate = own().members[static_cast<std::size_t>(k)];
      const ElementRange range = own().shard(k, count_);
      Slice result = total_;
      if (mate != worker_) {
        if (shard_.size() > 0) phase.sends.push_back({mate, kGather, total_});
        if (range.size() == 0) continue;
        result = new_scratch(range.size());
        phase.receives.push_back({mate, kGather, result});
      }
      if (range.size() == 0) continue;
      plan_.pieces.push_back({range.begin, range.size(), 0, {{result, 1}}});
    }
    if (mates() > 1) add_phase(std::move(phase));
  }

  static constexpr int kReduce = 0;
  static constexpr int kExchange = 1;
  static constexpr int kGiveBack = 2;
  static constexpr int kGather = 3;
  static constexpr int kStages = 4;

  int worker_;
  std::int64_t count_;
  PlanOptions options_;
  double scale_;
  std::vector<HostPart> hosts_;
  int host_ = 0;  ///< index of the own host among the group's hosts
  int me_ = 0;    ///< index of the worker among its mates
  ElementRange shard_;
  Slice partial_;
  Slice total_;
  Plan plan_;
};

}  // namespace

Plan hierarchical_plan(const std::vector<int>& group, const HostShape& shape, int worker,
                       std::int64_t count, const PlanOptions& options) {
  return Builder(group, shape, worker, count, options).build();
}

}  // namespace gossamer
