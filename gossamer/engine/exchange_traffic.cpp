#include "gossamer/engine/exchange_traffic.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

using Exchanges = std::array<std::shared_ptr<Exchange>, kMaxVectors>;  ///< by payload

template <class Use>
void for_each(const Exchanges& exchanges, const Use& use) {
  for (const auto& exchange : exchanges) {
    if (exchange) use(*exchange);
  }
}

class ExchangeTraffic final : public BucketTraffic {
 public:
  ExchangeTraffic(const BucketState& state, const EngineOptions& options, ExchangeRunner& runner,
                  LostPeers* lost)
      : state_(state),
        pattern_(find_pattern(options.pattern)),
        checks_(options.check_payloads),
        recorder_(options.recorder),
        runner_(runner),
        lost_(lost) {}

  void expect(const Plan& plan, std::int64_t number) override {
    Slot& slot = slot_of(number);
    GOSSAMER_ASSERT(&slot != current_);
    const int stage = stage_of(number);
    const std::span<const Payload> payloads = pattern_.payloads_of(stage);
    for (std::size_t k = 0; k < payloads.size(); ++k) {
      slot.exchanges[k] = runner_.expect({.plan = &plan,
                                          .dtype = state_.dtype(),
                                          .arena = &slot.arenas[k],
                                          .step = number,
                                          .stream = stream::of_payload(state_.index, k),
                                          .error = carried_error(state_, pattern_, stage, k),
                                          .checks = checks_ && payloads[k] == Payload::parameters,
                                          .recorder = recorder_,
                                          .recorded_step = number / pattern_.stages(),
                                          .lost = lost_,
                                          .steps_before = number / pattern_.stages()});
    }
  }

  void launch(const Plan& plan, std::int64_t number,
              std::span<const PayloadRef> payloads) override {
    GOSSAMER_ASSERT(current_ == nullptr);
    current_ = &slot_of(number);
    plan_ = &plan;
    for (std::size_t k = 0; k < payloads.size(); ++k) {
      runner_.start(current_->exchanges[k], payloads[k]);
    }
  }

  void wait(Until until) override {
    if (current_ == nullptr) return;
    for_each(current_->exchanges, [](Exchange& exchange) { exchange.wait(); });
    for_each(lent_, [](Exchange& exchange) { exchange.wait_all_back(); });
    lent_ = {};
    if (until == Until::arrived) return;
    for_each(current_->exchanges, [](Exchange& exchange) { exchange.take_over(); });
    if (until == Until::copied) return;
    for_each(current_->exchanges, [](Exchange& exchange) { exchange.wait_all_back(); });
  }

  void wait_until_given(Deadline deadline) override {
    for_each(lent_, [&](Exchange& exchange) { exchange.wait_until_given(deadline); });
  }

  bool is_ready(Deadline deadline) override {
    if (current_ == nullptr) return true;
    bool is_ready = true;
    for_each(current_->exchanges,
             [&](Exchange& exchange) { is_ready = is_ready && exchange.advance(); });
    for_each(lent_,
             [&](Exchange& exchange) { is_ready = is_ready && exchange.is_all_back(deadline); });
    return is_ready;
  }

  Arrived arrived() override {
    Arrived all{.pieces = plan_->pieces,
                .buffers = {},
                .journeys = {},
                .skipped = 0,
                .dtype = state_.dtype()};
    for (std::size_t k = 0; k < kMaxVectors; ++k) {
      const auto& exchange = current_->exchanges[k];
      if (!exchange) continue;
      all.buffers[k] = exchange->buffers();
      all.journeys.push_back(exchange->journey());
    }
    if (lost_ != nullptr) leave_out(all);
    return all;
  }

  void finish() override {
    for_each(current_->exchanges, [](Exchange& exchange) { exchange.finish(); });
    lent_ = std::exchange(current_->exchanges, {});
    current_ = nullptr;
  }

 private:
  /// What an exchange uses; consecutive ones take turns with two of them.
  struct Slot {
    std::array<Arena, kMaxVectors> arenas;
    Exchanges exchanges;
  };

  /// Takes out what has not come. Payloads of one neighbour count together or not at all.
  void leave_out(Arrived& all) {
    std::vector<char> is_missing(plan_->scratch.size() + 1, 0);
    bool is_spoiled = false;
    for_each(current_->exchanges, [&](const Exchange& exchange) {
      is_spoiled = is_spoiled || exchange.is_spoiled();
      for (std::size_t k = 0; k < is_missing.size(); ++k) is_missing[k] |= exchange.missing()[k];
    });
    const auto missing = std::ranges::count(is_missing, 1);
    if (!is_spoiled && missing == 0) return;
    pieces_ = pieces_left(*plan_, is_spoiled, is_missing);
    all.pieces = pieces_;
    all.skipped = is_spoiled ? 1 : missing;
  }

  Slot& slot_of(std::int64_t number) { return slots_[at(number % 2)]; }
  int stage_of(std::int64_t number) const { return static_cast<int>(number % pattern_.stages()); }

  const BucketState& state_;
  const Pattern& pattern_;
  const bool checks_;
  Recorder* const recorder_;
  ExchangeRunner& runner_;
  LostPeers* const lost_;
  std::array<Slot, 2> slots_;
  Slot* current_ = nullptr;     ///< launched and not yet finished
  const Plan* plan_ = nullptr;  ///< of the current slot
  std::vector<Piece> pieces_;   ///< of the current slot, where something has not come
  Exchanges lent_;              ///< those finished last, whose payload peers may still read
};

}  // namespace

std::unique_ptr<BucketTraffic> make_exchange_traffic(const BucketState& state,
                                                     const EngineOptions& options,
                                                     ExchangeRunner& runner, LostPeers* lost) {
  return std::make_unique<ExchangeTraffic>(state, options, runner, lost);
}

}  // namespace gossamer
