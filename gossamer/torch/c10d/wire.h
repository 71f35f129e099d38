#pragma once
/// C10dWire: frames to and from one peer over a process group of torch.

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace gossamer {

/// Note [Gloo never times out]: a wait of Gloo that times out closes all connections of its group,
/// so waits here have no time limit that matters; `abort` ends them. Gloo keeps writing to, or
/// reading from, what was posted until its connections are closed, and if that memory is gone, its
/// thread spins for ever: so everything posted is this wire's own memory, and lives until the
/// destructor has closed the connections. When a peer dies, Gloo fails all pending operations but
/// the one it is in the middle of; hence the sentinel, a receive that never starts, which `check`
/// looks at.
///
/// Frames arrive whole and in order. A receive is posted for the largest frame and takes a shorter
/// one, which Gloo allows.
class C10dWire {
 public:
  /// `peer` is the peer's rank in `group`. Starts receiving. Throws what the group throws.
  C10dWire(c10::intrusive_ptr<::c10d::Backend> group, int peer);
  /// Closes all connections of the group.
  ~C10dWire();
  C10dWire(const C10dWire&) = delete;
  C10dWire& operator=(const C10dWire&) = delete;

  /// For the one thread that writes. Memory for the next frame, kFrameBytes long; blocks until an
  /// earlier frame has left it; empty after abort. Throws when the link is broken.
  std::span<std::byte> claim();
  /// Sends the first `bytes` bytes of what was claimed; does not block.
  void write(std::size_t bytes);
  /// Blocks until all frames have been given to the network; false after abort.
  bool flush();

  /// For the one thread that reads. The next frame, valid until the next call; blocks until it is
  /// there; empty after abort. Throws when the link is broken. What follows the frame in the span
  /// is of no meaning.
  std::span<const std::byte> read();

  /// For one thread that watches. Throws when the link is broken.
  void check();
  /// Ends all blocking calls, now and later.
  void abort();

 private:
  using WorkPtr = c10::intrusive_ptr<::c10d::Work>;
  struct Slot {
    at::Tensor memory;
    WorkPtr work;
  };
  static constexpr std::size_t kSlots = 4;  // so many frames are under way each way

  void post_receive(Slot& slot);
  bool wait(Slot& slot);
  std::span<std::byte> bytes_of(const Slot& slot) const;

  const c10::intrusive_ptr<::c10d::Backend> group_;
  const int peer_;
  std::atomic<bool> aborted_ = false;
  std::mutex posting_;  // guards the works, and the group's own counters
  std::array<Slot, kSlots> out_;
  std::array<Slot, kSlots> in_;
  Slot sentinel_;
  std::size_t next_out_ = 0;
  std::size_t next_in_ = 0;
  bool reading_ = false;  // the frame at next_in_ was given out
};

}  // namespace gossamer
