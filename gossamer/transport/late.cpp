#include "gossamer/transport/late.h"

#include <optional>

#include "gossamer/base/errors.h"

namespace gossamer {

void fail_late(const Transport& transport, int peer, const std::string& operation, double elapsed_s,
               const std::string& why) {
  const int rank = transport.describe().rank;
  const auto unheard = peer == rank ? std::nullopt : transport.unheard(peer);
  throw TransportError({.rank = rank,
                        .peer = peer,
                        .operation = operation,
                        .elapsed_s = elapsed_s,
                        .reason = "deadline passed; " + why + words_on(unheard),
                        .fault = Fault::late,
                        .unheard = rank_of(unheard)});
}

}  // namespace gossamer
