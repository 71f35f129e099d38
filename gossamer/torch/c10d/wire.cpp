#include "gossamer/torch/c10d/wire.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "gossamer/torch/c10d/frame.h"

namespace gossamer {
namespace {

constexpr int kFrameTag = 0x6055;
constexpr int kSentinelTag = 0x6056;
constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 365);

at::Tensor make_memory(std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
}

}  // namespace

C10dWire::C10dWire(c10::intrusive_ptr<::c10d::Backend> group, int peer)
    : group_(std::move(group)), peer_(peer) {
  for (Slot& slot : out_) slot.memory = make_memory(kFrameBytes);
  for (Slot& slot : in_) {
    slot.memory = make_memory(kFrameBytes);
    post_receive(slot);
  }
  sentinel_.memory = make_memory(1);
  std::vector<at::Tensor> tensors{sentinel_.memory};
  sentinel_.work = group_->recv(tensors, peer_, kSentinelTag);
}

C10dWire::~C10dWire() {
  try {
    sentinel_.work->wait(std::chrono::milliseconds(1));
  } catch (const std::exception&) {  // always: nothing is ever sent to the sentinel
  }
}

std::span<std::byte> C10dWire::bytes_of(const Slot& slot) const {
  return {static_cast<std::byte*>(slot.memory.data_ptr()),
          static_cast<std::size_t>(slot.memory.numel())};
}

void C10dWire::post_receive(Slot& slot) {
  const std::lock_guard lock(posting_);
  if (aborted_) return;
  std::vector<at::Tensor> tensors{slot.memory};
  slot.work = group_->recv(tensors, peer_, kFrameTag);
}

bool C10dWire::wait(Slot& slot) {
  if (!slot.work) return !aborted_;
  if (aborted_ || !slot.work->wait(kForEver)) return false;
  const std::lock_guard lock(posting_);
  slot.work.reset();  // a second wait for it would not end
  return true;
}

std::span<std::byte> C10dWire::claim() {
  Slot& slot = out_[next_out_];
  return wait(slot) ? bytes_of(slot) : std::span<std::byte>();
}

void C10dWire::write(std::size_t bytes) {
  Slot& slot = out_[next_out_];
  std::vector<at::Tensor> tensors{slot.memory.narrow(0, 0, static_cast<std::int64_t>(bytes))};
  const std::lock_guard lock(posting_);
  if (aborted_) return;
  slot.work = group_->send(tensors, peer_, kFrameTag);
  next_out_ = (next_out_ + 1) % kSlots;
}

bool C10dWire::flush() {
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (!wait(out_[(next_out_ + i) % kSlots])) return false;
  }
  return true;
}

std::span<const std::byte> C10dWire::read() {
  if (std::exchange(reading_, false)) {
    post_receive(in_[next_in_]);
    next_in_ = (next_in_ + 1) % kSlots;
  }
  if (!wait(in_[next_in_])) return {};
  reading_ = true;
  return bytes_of(in_[next_in_]);
}

void C10dWire::check() {
  sentinel_.work->abort();  // so that the wait does not block
  sentinel_.work->wait(kForEver);
}

void C10dWire::abort() {
  const std::lock_guard lock(posting_);
  aborted_ = true;
  for (auto* slots : {&out_, &in_}) {
    for (const Slot& slot : *slots) {
      if (slot.work) slot.work->abort();
    }
  }
}

}  // namespace gossamer
