#pragma once
/// Card: where a worker can be reached, as it tells the others.

#include <cstdint>
#include <string>

#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {

struct Card {
  std::string reach;  ///< see reach_of_shared_memory(); "-" for none
  std::string name;   ///< on its host
  StreamAddress streams;
  std::uint64_t generation = 0;
};

/// A line without ends of lines, and back; words that are missing are left empty.
std::string to_text(const Card& card);
Card card_of(const std::string& text);

}  // namespace gossamer
