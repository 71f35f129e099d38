#pragma once
/// One worker's part of timed transfers between workers.

#include <cstdint>
#include <memory>

#include "gossamer/base/shared_memory.h"
#include "gossamer/engine/exchange_runner.h"

namespace gossamer {

/// Messages of one size that go both ways at once; −1 is nobody.
struct Transfer {
  int to = -1;
  int from = -1;
  std::int64_t messages = 0;
  std::int64_t message_bytes = 0;
};

/// Sends and receives for a probe. The transfers of a worker are numbered, by all alike.
class Transfers {
 public:
  /// Payloads have up to `most_bytes`. The runner must outlive this.
  Transfers(ExchangeRunner& runner, std::int64_t most_bytes);

  /// Seconds from now until all of it has come and gone, the next several messages always under
  /// way; 0 for nothing. Every transfer has a number, which both ends must give, only once.
  double run(std::int64_t number, const Transfer& transfer);
  /// Half the median time of a small message to `peer` and back; collective for the two, of which
  /// one `leads`. Numbers as in run().
  double one_way_s(std::int64_t number, int peer, bool leads);

 private:
  Request post(std::int64_t number, std::int64_t message, int peer, bool sends,
               std::span<std::byte> bytes);
  bool has_ended(Request request, std::span<std::byte> landing);
  void nap();
  void finish(Request request, std::span<std::byte> landing);

  ExchangeRunner& runner_;
  std::shared_ptr<SharedMemory> outgoing_;
  std::shared_ptr<SharedMemory> incoming_;
};

}  // namespace gossamer
