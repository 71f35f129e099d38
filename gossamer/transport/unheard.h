#pragma once
/// Unheard: a worker of which nothing has been heard, while others are late perhaps because of it.

#include <optional>
#include <string>

#include "gossamer/base/clock.h"

namespace gossamer {

/// A worker, and when it last said something.
struct Unheard {
  int rank = 0;
  Deadline since = {};
};

/// The end of a sentence on what is late; empty where everybody has been heard.
std::string words_on(const std::optional<Unheard>& unheard);
/// For TransportError::Details.
std::optional<int> rank_of(const std::optional<Unheard>& unheard);

}  // namespace gossamer
