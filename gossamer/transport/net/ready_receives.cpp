#include "gossamer/transport/net/ready_receives.h"

namespace gossamer {

void ReadyReceives::keep(const ReadyReceive& receive) {
  receives_.insert_or_assign(receive.tag, receive);
  tags_.emplace(receive.number, receive.tag);
}

std::optional<ReadyReceive> ReadyReceives::take(Tag tag) {
  const auto found = receives_.find(tag);
  if (found == receives_.end()) return std::nullopt;
  const ReadyReceive receive = found->second;
  receives_.erase(found);
  tags_.erase(receive.number);
  return receive;
}

void ReadyReceives::drop(std::uint64_t number) {
  const auto tag = tags_.find(number);
  if (tag == tags_.end()) return;
  const auto found = receives_.find(tag->second);
  if (found != receives_.end() && found->second.number == number) receives_.erase(found);
  tags_.erase(tag);
}

}  // namespace gossamer
