#pragma once
/// KeptOffers: what a peer of this host has offered, and nobody has taken yet.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/frame.h"

namespace gossamer {

struct Offer {
  FrameHeader header;
  std::vector<std::byte> data;
  std::shared_ptr<const SharedMapping> memory;  ///< null: data
};

class KeptOffers {
 public:
  /// In the place of another one with its tag; false where one that is there has its number.
  bool keep(Offer offer);
  std::optional<Offer> take(Tag tag);
  /// False where there is none of this number.
  bool drop(std::uint64_t number);
  void clear() { *this = KeptOffers(); }
  /// See kMostOpen.
  bool is_too_much() const { return offers_.size() > kMostOpen || bytes_ > kMostOpenBytes; }

 private:
  std::map<Tag, Offer> offers_;
  std::unordered_map<std::uint64_t, Tag> tags_;  ///< the same by number
  std::size_t bytes_ = 0;                        ///< of data
};

}  // namespace gossamer
