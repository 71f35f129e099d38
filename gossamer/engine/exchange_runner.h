#pragma once
/// Executes Plans over a Transport on a thread of its own, while the worker computes.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "gossamer/engine/exchange.h"

namespace gossamer {

/// Owns the thread that advances one worker's exchanges.
class ExchangeRunner {
 public:
  ExchangeRunner(Transport& transport, double timeout_s, WhileWaiting while_waiting = nullptr);
  ~ExchangeRunner();

  /// Posts the first receives of an exchange whose payload is not ready yet.
  std::shared_ptr<Exchange> expect(const ExchangeSpec& spec) const;
  /// Starts it and posts its first sends before returning.
  void start(const std::shared_ptr<Exchange>& exchange, const PayloadRef& payload);
  /// Both at once.
  std::shared_ptr<Exchange> launch(const ExchangeSpec& spec, const PayloadRef& payload);
  /// From now on the thread also calls `attend` whenever something may have come; not empty again.
  void attend(std::function<void()> attend);
  Transport& transport() const { return transport_; }
  double timeout_s() const { return timeout_s_; }
  void while_waiting() const {
    if (while_waiting_) while_waiting_();
  }

 private:
  void run(const std::stop_token& stop);
  void advance_all();

  Transport& transport_;
  const double timeout_s_;
  const WhileWaiting while_waiting_;
  std::mutex mutex_;  ///< guards active_ and attend_
  std::vector<std::shared_ptr<Exchange>> active_;
  std::function<void()> attend_;
  std::condition_variable_any launched_;
  std::jthread thread_;
};

}  // namespace gossamer
