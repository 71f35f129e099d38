#pragma once
/// Arrival: how a worker that was lost comes back.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/engine/exchange.h"
#include "gossamer/engine/reception.h"
#include "gossamer/transport/scoped_request.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// The part of the newcomer, before it makes its engine. Throws TransportError where nobody is
/// there, or somebody has said no.
class Arrival {
 public:
  /// `preferred`: all other ranks, the one first that the state is best taken from.
  Arrival(Transport& transport, std::vector<int> preferred, double timeout_s,
          WhileWaiting while_waiting);

  /// Of one worker that is there.
  std::string take_state();
  /// The number of steps that all have done when this worker begins with the next one.
  std::int64_t agree_on_start();
  /// Those that are there, once the start is agreed on.
  std::vector<int> there() const;
  /// Those that are not there, to be taken for lost.
  const std::vector<int>& absent() const { return absent_; }
  /// Once the start is agreed on: those who have asked this worker meanwhile.
  std::unique_ptr<Reception> reception() { return std::move(reception_); }

 private:
  struct Host {
    int peer = 0;
    std::int64_t number = 0;
    bool is_there = true;
    bool is_coming = false;  ///< it comes back itself
  };

  /// What all have answered, and how long that took.
  struct Heard {
    std::chrono::duration<double> taken{};
    std::int64_t furthest = 0;  ///< steps done by one of them
    std::int64_t most = 0;      ///< AdmissionWord::most of one of them
    bool agree = true;          ///< with this worker who is there
  };

  /// By peer, of those that are there.
  std::map<int, AdmissionWord> ask_all(const AdmissionWord& question);
  Heard ask_how_far();
  Heard agree_on_who_is_there();
  bool wait_for_those_before();
  bool ask(Host& host, const AdmissionWord& question, AdmissionWord& answer);
  void answer_others();
  void leave_out_absent();
  void leave_out_coming();
  ScopedRequest send(int peer, Tag tag, AdmissionWord& word);
  ScopedRequest receive(int peer, Tag tag, std::span<std::byte> landing);
  bool finish(const Host& host, ScopedRequest request, void* landing);
  void pause();
  [[noreturn]] void fail(const std::string& reason) const;

  Transport& transport_;
  const int rank_;
  const std::uint64_t generation_;
  std::vector<Host> hosts_;
  std::vector<int> absent_;
  std::unique_ptr<Reception> reception_;
  const double timeout_s_;
  const WhileWaiting while_waiting_;
  Deadline deadline_;
};

}  // namespace gossamer
