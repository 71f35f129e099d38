#pragma once
/// StopAgreement: one step after which all workers stop, when any of them is told to.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "gossamer/engine/exchange.h"
#include "gossamer/engine/stop_talk.h"
#include "gossamer/exchange/method.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Who stops when]: workers that gossip are apart by some steps, and a scheduler may tell
/// only one of them to stop. Each has a bid: the steps that it has done, with the one under way. A
/// worker that is told to stop, or hears that another one is, fixes its bid and passes the news on.
/// The largest bid is what all do. Until a worker knows it, it does no step beyond its bid. Others
/// that wait inside of a step for what it would send then fix their own bids while they wait, so
/// that nobody waits in a circle. How the news travel: StopAlongTree, where all workers are needed,
/// and StopAmongLeft, where some may be lost. There is no message unless somebody stops.
class StopAgreement {
 public:
  /// Expects news from others. `done`: steps that this worker has done.
  explicit StopAgreement(Transport& transport, std::int64_t done = 0, Lost lost = Lost::error);

  /// Hears and passes on. `told`: the signal by which this worker is told to stop; 0: it is not. To
  /// be called now and then while the worker waits for others; from any thread.
  void look(int told);
  /// Whether all stop after the `done` steps that this worker has done; to be called between steps,
  /// by the thread that does them. Waits where that is not known yet, and calls `while_waiting`
  /// meanwhile, which may throw. Where it says no, another step is bid. Throws what became of a
  /// worker without which it will not be known any more.
  bool is_last(std::int64_t done, int told, const WhileWaiting& while_waiting = nullptr);
  /// By which signal this worker, or the one that passed the news on, was told; 0: by none yet.
  int signal() const;

 private:
  void hear(int told);
  std::optional<bool> ask(std::int64_t done, int told);

  Transport& transport_;
  mutable std::mutex mutex_;  // guards all below
  const std::unique_ptr<StopTalk> talk_;
  std::int64_t bid_ = 0;
  int signal_ = 0;  ///< of which this worker has heard; then its bid is fixed
};

}  // namespace gossamer
