#include "gossamer/engine/exchange.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "gossamer/base/errors.h"
#include "gossamer/base/simulated_time.h"
#include "gossamer/base/timeout.h"
#include "gossamer/engine/elements.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/transport/late.h"

namespace gossamer {
namespace {

constexpr std::int64_t kCodedAtOnce = 8 * kCodecBlock;

}  // namespace

Deadline deadline_after(double seconds) { return Clock::now() + duration_of(seconds, "engine"); }

std::size_t Arena::bytes_for(const Plan& plan, DType dtype) {
  std::size_t needed = 0;
  for (int k = 1; k <= static_cast<int>(plan.scratch.size()); ++k) {
    needed += aligned(bytes_of(plan, whole_scratch(plan, k), dtype));
  }
  return needed;
}

void Arena::use(Owner owner, std::span<std::byte> memory) {
  owner_ = std::move(owner);
  memory_ = memory;
}

void Arena::fit(const Plan& plan, DType dtype) {
  const std::size_t needed = bytes_for(plan, dtype);
  if (needed > memory_.size()) {
    own_ = make_aligned_bytes(needed);
    use(nullptr, {own_.get(), needed});
  }
  starts_.assign(1, nullptr);
  std::size_t offset = 0;
  for (int k = 1; k <= static_cast<int>(plan.scratch.size()); ++k) {
    starts_.push_back(memory_.data() + offset);
    offset += aligned(bytes_of(plan, whole_scratch(plan, k), dtype));
  }
}

Exchange::Exchange(Transport& transport, const ExchangeSpec& spec,
                   const WhileWaiting& while_waiting)
    : transport_(transport), spec_(spec), while_waiting_(while_waiting) {
  spec_.arena->fit(*spec_.plan, spec_.dtype);
  bases_.push_back(nullptr);  // the payload
  for (int k = 1; k <= static_cast<int>(spec_.plan->scratch.size()); ++k) {
    bases_.push_back(spec_.arena->buffer(k));
  }
  is_missing_.assign(bases_.size(), 0);
  if (!spec_.plan->phases.empty()) post_receives();
}

Exchange::~Exchange() {
  const std::lock_guard lock(mutex_);
  release_all();
}

const std::byte* Exchange::at(const Slice& slice) const {
  return elements::address(spec_.dtype, bases_[gossamer::at(slice.buffer)], slice.offset);
}

void Exchange::start(const PayloadRef& payload, double timeout_s) {
  const std::lock_guard lock(mutex_);
  payload_ = payload;
  bases_[0] = static_cast<const std::byte*>(payload.data);
  timeout_s_ = timeout_s;
  started_at_ = Clock::now();
  deadline_ = deadline_after(timeout_s);
  const bool has_runner = SimulatedTime::of_this_thread() == nullptr;
  by_runner_ = has_runner && (spec_.plan->phases.size() > 1 || payload_.is_ready);
  awaits_payload_.store(static_cast<bool>(payload_.is_ready), std::memory_order_release);
  is_spoiled_ = is_spoiled_ || (spec_.lost != nullptr && adds_up(*spec_.plan) &&
                                spec_.lost->are_in(*spec_.plan, spec_.steps_before));
  started_ = true;
}

bool Exchange::advance() {
  const std::lock_guard lock(mutex_);
  if (ended_.load(std::memory_order_relaxed)) return true;
  if (!started_) return false;
  try {
    step_phases();
  } catch (...) {
    end(std::current_exception());
  }
  return ended_.load(std::memory_order_relaxed);
}

bool Exchange::has_payload() {
  if (!payload_.is_ready) return true;
  if (!payload_.is_ready()) return false;
  payload_.is_ready = nullptr;
  awaits_payload_.store(false, std::memory_order_release);
  return true;
}

void Exchange::step_phases() {
  if (!has_payload()) return check_device_deadline();
  while (phase_ < spec_.plan->phases.size()) {
    if (!sent_) post_sends();
    if (!collect(receives_)) return check_deadline(deadline_);
    if (!is_spoiled_) add_up();
    ++phase_;
    sent_ = false;
    if (phase_ < spec_.plan->phases.size()) post_receives();
  }
  if (!collect(sends_)) return check_deadline(deadline_);
  end(nullptr);
}

/// The transport ends what has a deadline; receives that were posted early have none of their own.
void Exchange::check_deadline(Deadline deadline) const {
  if (Clock::now() < deadline) return;
  const bool receiving = !receives_.empty();
  const auto& open = receiving ? receives_ : sends_.empty() ? lent_ : sends_;
  fail_late(open.front().peer, receiving ? "receive" : "send", "the peer is late or gone");
}

void Exchange::check_device_deadline() const {
  if (Clock::now() < deadline_) return;
  fail_late(transport_.describe().rank, "copy from the device", "the device has not come to it");
}

void Exchange::fail_late(int peer, const std::string& operation, const std::string& why) const {
  const std::chrono::duration<double> elapsed = Clock::now() - started_at_;
  gossamer::fail_late(transport_, peer, operation, elapsed.count(), why);
}

void Exchange::post_receives() {
  for (const Message& message : spec_.plan->phases[phase_].receives) {
    if (is_off(message.peer)) {
      miss(message.slice.buffer);
      continue;
    }
    const Slice& slice = message.slice;
    make_own(slice.buffer);  // an earlier phase may have received it in place
    std::byte* landing =
        elements::address(spec_.dtype, spec_.arena->buffer(slice.buffer), slice.offset);
    const bool is_whole = slice == whole_scratch(*spec_.plan, slice.buffer);
    const std::size_t bytes = bytes_of(*spec_.plan, slice, spec_.dtype);
    const Request request =
        transport_.receive(message.peer, tag(message.slot), {landing, bytes}, deadline_);
    const int buffer = is_whole ? slice.buffer : -1;
    const Codec codec = is_coded(*spec_.plan, slice) ? spec_.plan->codec : Codec::fp32;
    receives_.push_back({request, message.peer, landing, buffer, message.slot, bytes, codec});
  }
}

/// Writes what this phase sends coded.
void Exchange::code() {
  for (const Coding& coding : spec_.plan->phases[phase_].codings) {
    std::byte* kept = nullptr;
    if (coding.kept.count > 0) {
      make_own(coding.kept.buffer);
      kept = const_cast<std::byte*>(at(coding.kept));
    }
    const std::int64_t count = coding.from.count;
    if (coding.from.buffer != 0 || !payload_.read) {
      code(coding, kept, 0, count, at(coding.from));
      continue;
    }
    // In parts that stay in the first cache.
    alignas(kCacheLine) std::array<std::byte, kCodedAtOnce * sizeof(double)> part;
    for (std::int64_t begin = 0; begin < count; begin += kCodedAtOnce) {
      const std::int64_t here = std::min(kCodedAtOnce, count - begin);
      payload_.read(coding.from.offset + begin, here, part.data());
      code(coding, kept, begin, here, part.data());
    }
  }
}

/// Elements [begin, begin + count) of a coding, which are at `from`; whole blocks of the codec but
/// for its last ones.
void Exchange::code(const Coding& coding, std::byte* kept, std::int64_t begin, std::int64_t count,
                    const std::byte* from) {
  const DType dtype = spec_.dtype;
  const Codec codec = spec_.plan->codec;
  const auto part_of = [&](void* all, std::int64_t first) {
    return all == nullptr ? nullptr : elements::address(dtype, all, first);
  };
  elements::encode(dtype,
                   {.codec = codec,
                    .x = from,
                    .count = count,
                    .coded = spec_.arena->buffer(coding.into) + coded_bytes(codec, begin, dtype),
                    .kept = part_of(kept, begin),
                    .own = coding.own,
                    .keep = coding.keep,
                    .error = part_of(spec_.error, coding.at + begin)});
}

void Exchange::post_sends() {
  if (!is_spoiled_) code();
  payload_.read = nullptr;  // what it holds on to may go
  for (const Message& message : spec_.plan->phases[phase_].sends) {
    if (is_off(message.peer)) continue;
    if (is_spoiled_) {
      const Request request = transport_.send(message.peer, tag(message.slot), {}, deadline_);
      sends_.push_back({.request = request, .peer = message.peer, .refuses = true});
      continue;
    }
    const bool is_payload = message.slice.buffer == 0;
    const Owner& owner = is_payload ? payload_.owner : spec_.arena->owner();
    const std::byte* payload = at(message.slice);
    if (is_payload && payload_.lent != nullptr) {
      payload = static_cast<const std::byte*>(payload_.lent) + (payload - bases_[0]);
    }
    const std::size_t bytes = bytes_of(*spec_.plan, message.slice, spec_.dtype);
    if (spec_.recorder != nullptr) {
      const std::int64_t step = spec_.recorded_step.value_or(spec_.step);
      spec_.recorder->sent({message.peer, tag(message.slot), step, static_cast<int>(phase_),
                            static_cast<std::int64_t>(bytes), Clock::now()});
    }
    const Request request =
        transport_.send(message.peer, tag(message.slot), {payload, bytes}, deadline_, owner);
    const bool lends = static_cast<bool>(owner);
    (lends ? lent_ : sends_).push_back({.request = request, .peer = message.peer});
  }
  sent_ = true;
}

/// Takes note of the requests that have ended; true when none is left open.
bool Exchange::collect(std::vector<Open>& open) {
  for (std::size_t k = 0; k < open.size();) {
    if (has_ended(open[k])) {
      open[k] = open.back();
      open.pop_back();
    } else {
      ++k;
    }
  }
  return open.empty();
}

/// Whether it has, and then it is dealt with.
bool Exchange::has_ended(const Open& entry) {
  const Status status = transport_.poll(entry.request);
  if (status.state == Status::State::pending) return false;
  if (status.state == Status::State::failed) {
    pass_over(entry, status.error);
    transport_.release(entry.request);
    return true;
  }
  if (entry.landing != nullptr && !is_spoiled_) take(entry, status);
  const bool in_place =
      entry.landing != nullptr && !status.payload.empty() && status.payload.data() != entry.landing;
  if (in_place && entry.buffer > 0 && !is_spoiled_) {
    bases_[gossamer::at(entry.buffer)] = status.payload.data();
    borrowed_.push_back(entry);
    return true;
  }
  land(status, entry.landing);
  transport_.release(entry.request);
  return true;
}

/// Looks at what has arrived.
void Exchange::take(const Open& entry, const Status& status) {
  if (spec_.checks) {
    const std::byte* const from = status.payload.empty() ? entry.landing : status.payload.data();
    require_finite({from, entry.bytes}, entry.codec, spec_.dtype, entry.peer);
  }
  arrived_ = std::max(arrived_, status.arrived);
  if (spec_.recorder == nullptr) return;
  const std::int64_t step = spec_.recorded_step.value_or(spec_.step);
  spec_.recorder->arrived({entry.peer, tag(entry.slot), step, static_cast<int>(phase_),
                           static_cast<std::int64_t>(entry.bytes), status.arrived});
}

/// See Note [Without the lost]. That a refusal fails here, too, is how it ends.
void Exchange::pass_over(const Open& entry, const std::exception_ptr& error) {
  if (spec_.lost == nullptr) std::rethrow_exception(error);
  spec_.lost->pass_over(error, spec_.steps_before);
  if (entry.landing != nullptr) miss(entry.buffer);
}

bool Exchange::is_off(int peer) const {
  return spec_.lost != nullptr && spec_.lost->is_off(peer, spec_.steps_before);
}

/// What fills this buffer does not come.
void Exchange::miss(int buffer) {
  if (adds_up(*spec_.plan)) {
    is_spoiled_ = true;
  } else {
    is_missing_[gossamer::at(buffer)] = 1;
  }
}

void Exchange::add_up() {
  std::vector<elements::Summand> terms;
  for (const Sum& sum : spec_.plan->phases[phase_].sums) {
    terms.clear();
    for (const Slice& term : sum.terms) {
      terms.push_back({at(term), is_coded(*spec_.plan, term)});
    }
    make_own(sum.into.buffer);  // the sum may be added to what was received there
    elements::sum(
        spec_.dtype,
        elements::address(spec_.dtype, spec_.arena->buffer(sum.into.buffer), sum.into.offset),
        sum.into.count, {.terms = terms, .scale = sum.scale, .codec = spec_.plan->codec});
  }
}

/// A buffer that is in a peer's memory is copied into the arena.
void Exchange::make_own(int buffer) {
  const std::byte*& base = bases_[gossamer::at(buffer)];
  std::byte* own = spec_.arena->buffer(buffer);
  if (base == own) return;
  const Slice whole = whole_scratch(*spec_.plan, buffer);
  elements::copy_bytes(own, base, bytes_of(*spec_.plan, whole, spec_.dtype));
  base = own;
}

void Exchange::end(std::exception_ptr error) {
  error_ = std::move(error);
  if (error_) release_all();
  awaits_payload_.store(false, std::memory_order_release);
  ended_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Exchange::give_up() {
  const std::lock_guard lock(mutex_);
  if (!ended_.load(std::memory_order_relaxed)) {
    end(std::make_exception_ptr(std::logic_error("an exchange was given up")));
  }
}

void Exchange::release_all() {
  for (auto* open : {&sends_, &lent_, &receives_, &borrowed_}) {
    for (const Open& entry : *open) transport_.release(entry.request);
    open->clear();
  }
}

void Exchange::finish() {
  const std::lock_guard lock(mutex_);
  GOSSAMER_ASSERT(ended_.load(std::memory_order_relaxed));
  for (const Open& entry : borrowed_) transport_.release(entry.request);
  borrowed_.clear();
}

void Exchange::take_over() {
  const std::lock_guard lock(mutex_);
  for (const Open& entry : borrowed_) {
    make_own(entry.buffer);
    transport_.release(entry.request);
  }
  borrowed_.clear();
}

bool Exchange::is_all_back(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (collect(lent_)) return true;
  check_deadline(deadline);
  return false;
}

void Exchange::wait_all_back(Deadline deadline) {
  for (;;) {
    if (is_all_back(deadline)) return;
    transport_.progress(std::min(deadline, Clock::now() + kLongestNap));
    if (while_waiting_) while_waiting_();
  }
}

void Exchange::wait() {
  if (!needs_runner()) {
    while (!advance()) {
      transport_.progress(Clock::now() + kLongestNap);
      if (while_waiting_) while_waiting_();
    }
  }
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLongestNap,
                            [&] { return ended_.load(std::memory_order_relaxed); })) {
    lock.unlock();
    if (while_waiting_) while_waiting_();
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
}

}  // namespace gossamer
