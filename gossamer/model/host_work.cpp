#include "gossamer/model/host_work.h"

#include <algorithm>
#include <cmath>

namespace gossamer {
namespace {

constexpr double kCrossing = 0.37;  // of a byte that is sent to another host, or comes from one
constexpr double kMemory = 0.087;   // of a byte that a pass reads or writes

struct CodecWork {
  double encode = 0;  ///< of an element
  double decode = 0;  ///< what reading it costs
};

CodecWork work_of(Codec codec, DType dtype) {
  switch (codec) {
    case Codec::fp32:
      return {0, kMemory * static_cast<double>(size_of(dtype))};
    case Codec::bf16:
      return {kMemory * (2 + static_cast<double>(size_of(dtype))), kMemory * 2};
    case Codec::int8:
      return {2, 1};
  }
  return {};
}

/// What reads and writes slices of a plan.
class Passes {
 public:
  Passes(const Plan& plan, const HostWorkOptions& options)
      : plan_(plan),
        is_finished_(options.finished_averages),
        plain_(work_of(Codec::fp32, options.dtype).decode),
        codec_(work_of(plan.codec, options.dtype)) {}

  double read(const Slice& slice) const {
    const double each = is_coded(plan_, slice) ? codec_.decode : plain_;
    return each * static_cast<double>(slice.count);
  }
  double write(std::int64_t count) const { return plain_ * static_cast<double>(count); }
  double encode(const Coding& coding) const {
    return codec_.encode * static_cast<double>(coding.from.count);
  }
  double sum(const Sum& sum) const {
    double work = write(sum.into.count);
    for (const Slice& term : sum.terms) work += read(term);
    return work;
  }
  /// A finished average in fp32 is read where it is.
  double mix(const Piece& piece) const {
    if (piece.terms.empty()) return 0;
    if (is_finished_ && !is_coded(plan_, piece.terms[0].slice)) return 0;
    double work = write(piece.count) * (is_finished_ ? 1 : 2);  // reads its own, too
    for (const Term& term : piece.terms) work += read(term.slice);
    return work;
  }

 private:
  const Plan& plan_;
  bool is_finished_;
  double plain_;
  CodecWork codec_;
};

}  // namespace

HostWork& HostWork::operator+=(const HostWork& more) {
  before += more.before;
  after += more.after;
  return *this;
}

HostWork host_work(const Plan& plan, std::span<const int> host_of, int worker,
                   const HostWorkOptions& options) {
  const Passes passes(plan, options);
  const auto host = [&](int w) { return host_of[static_cast<std::size_t>(w)]; };
  HostWork work;
  const auto crossing = [&](const std::vector<Message>& messages) {
    double bytes = 0;
    for (const Message& message : messages) {
      if (host(message.peer) == host(worker)) continue;
      bytes += static_cast<double>(bytes_of(plan, message.slice, options.dtype));
    }
    return kCrossing * bytes;
  };
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const Phase& phase = plan.phases[p];
    double& sending = p == 0 ? work.before : work.after;
    for (const Coding& coding : phase.codings) sending += passes.encode(coding);
    sending += crossing(phase.sends);
    work.after += crossing(phase.receives);
    for (const Sum& sum : phase.sums) work.after += passes.sum(sum);
  }
  for (const Piece& piece : plan.pieces) work.after += passes.mix(piece);
  return work;
}

std::vector<double> host_rates(const ClusterSpec& cluster) {
  const auto is_free = [](const HostSpec& host) { return std::isinf(host.host_rate_bytes_per_s); };
  std::vector<double> rates;
  if (std::ranges::all_of(cluster.hosts, is_free)) return rates;
  for (const int host : cluster.shape().hosts_by_rank()) {
    rates.push_back(cluster.hosts[static_cast<std::size_t>(host)].host_rate_bytes_per_s);
  }
  return rates;
}

double BusyThread::take(double ready, double seconds) {
  if (seconds <= 0) return ready;
  double left = seconds;
  double time = ready;
  auto first = std::ranges::find_if(busy_, [&](const auto& busy) { return busy.second >= ready; });
  auto next = first;
  // All of its idle time from `ready` on, so that it is busy from there to the end.
  for (; next != busy_.end() && next->first < time + left; ++next) {
    left -= std::max(0.0, next->first - time);
    time = std::max(time, next->second);
  }
  const double end = time + left;
  const double begin = first == next ? ready : std::min(ready, first->first);
  first = busy_.erase(first, next);
  busy_.insert(first, {begin, end});
  return end;
}

void BusyThread::forget_before(double time) {
  std::erase_if(busy_, [&](const auto& busy) { return busy.second < time; });
}

}  // namespace gossamer
