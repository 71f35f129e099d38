#include "gossamer/transport/request_table.h"

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

std::string to_string(Tag tag) {
  return "(" + std::to_string(tag.step) + ", " + std::to_string(tag.stream) + ", " +
         std::to_string(tag.slot) + ")";
}

}  // namespace

void fail_duplicate_tag(bool sending, int peer, Tag tag) {
  const std::string what = sending ? "a send to worker " : "a receive from worker ";
  fail_argument({.place = "transport",
                 .what = what + std::to_string(peer) + " with the same tag is pending",
                 .got = "tag (step, stream, slot) = " + to_string(tag),
                 .remedy = "use every tag once per pair of workers"});
}

void fail_no_request(Request request) {
  fail_argument({.place = "transport",
                 .what = "no such request",
                 .got = std::to_string(request),
                 .remedy = "a request ends with its release"});
}

void check_peer(int peer, int rank, int workers) {
  if (peer >= 0 && peer < workers && peer != rank) return;
  fail_argument({.place = "transport",
                 .what = "a peer must be another worker",
                 .got = "worker " + std::to_string(peer) + " at worker " + std::to_string(rank) +
                        " of " + std::to_string(workers)});
}

Failure said_by_peer(std::string reason) {
  const Fault fault = reason == kExpelledByPeer   ? Fault::expelled
                      : reason == kReplacedByPeer ? Fault::replaced
                                                  : Fault::lost;
  return {std::move(reason), fault};
}

Failure size_mismatch(std::size_t sent, std::size_t expected) {
  return {"sizes differ: " + std::to_string(sent) + " bytes sent, " + std::to_string(expected) +
              " bytes expected",
          sent == 0 || expected == 0 ? Fault::refused : Fault::other};
}

std::exception_ptr transport_failure(int rank, int peer, bool sending, double elapsed_s,
                                     const Failure& failure) {
  return std::make_exception_ptr(TransportError({.rank = rank,
                                                 .peer = peer,
                                                 .operation = sending ? "send" : "receive",
                                                 .elapsed_s = elapsed_s,
                                                 .reason = failure.reason,
                                                 .fault = failure.fault,
                                                 .unheard = failure.unheard}));
}

}  // namespace gossamer
