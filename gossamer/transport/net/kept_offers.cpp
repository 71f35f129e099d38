#include "gossamer/transport/net/kept_offers.h"

#include <utility>

namespace gossamer {

bool KeptOffers::keep(Offer offer) {
  take(offer.header.tag);
  if (!tags_.emplace(offer.header.number, offer.header.tag).second) return false;
  // Its bytes came in room for those of the largest.
  offer.data = std::vector<std::byte>(offer.data.begin(), offer.data.end());
  bytes_ += offer.data.size();
  offers_.emplace(offer.header.tag, std::move(offer));
  return true;
}

std::optional<Offer> KeptOffers::take(Tag tag) {
  const auto found = offers_.find(tag);
  if (found == offers_.end()) return std::nullopt;
  std::optional<Offer> offer = std::move(found->second);
  offers_.erase(found);
  tags_.erase(offer->header.number);
  bytes_ -= offer->data.size();
  return offer;
}

bool KeptOffers::drop(std::uint64_t number) {
  const auto tag = tags_.find(number);
  return tag != tags_.end() && take(tag->second).has_value();
}

}  // namespace gossamer
