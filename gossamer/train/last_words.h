#pragma once
/// What the processes of a run say when they end because one of them is lost.

#include <atomic>

#include "gossamer/base/errors.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Throws TransportError with the cause: on the lowest rank that is left as it was found here, on
/// the others in a few words. Throws Interrupted where *stop is set, or soon will be. One that left
/// in good order may have done so because of a third worker: then all are asked whether they are
/// there, which takes up to a second.
[[noreturn]] void throw_last_words(const TransportError& error, Transport& transport,
                                   const std::atomic<bool>* stop);

}  // namespace gossamer
