#include "gossamer/transport/unheard.h"

#include <chrono>

namespace gossamer {

std::string words_on(const std::optional<Unheard>& unheard) {
  if (!unheard) return {};
  const auto silence =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - unheard->since);
  return ", and nothing has been heard of worker " + std::to_string(unheard->rank) + " for " +
         std::to_string(silence.count()) + " s";
}

std::optional<int> rank_of(const std::optional<Unheard>& unheard) {
  return unheard ? std::optional(unheard->rank) : std::nullopt;
}

}  // namespace gossamer
