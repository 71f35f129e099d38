#pragma once
/// ReadyReceives: the receives of a peer of another host for which nobody has posted a send yet.

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "gossamer/transport/net/frame.h"

namespace gossamer {

struct ReadyReceive {
  Tag tag;
  std::uint64_t number = 0;  ///< the peer's
  std::uint64_t bytes = 0;
};

class ReadyReceives {
 public:
  /// In the place of another one with its tag.
  void keep(const ReadyReceive& receive);
  std::optional<ReadyReceive> take(Tag tag);
  void drop(std::uint64_t number);
  bool contains(std::uint64_t number) const { return tags_.contains(number); }
  void clear() { *this = ReadyReceives(); }
  /// See kMostOpen.
  bool is_full() const { return tags_.size() >= kMostOpen; }

 private:
  std::map<Tag, ReadyReceive> receives_;
  std::unordered_map<std::uint64_t, Tag> tags_;  ///< by number
};

}  // namespace gossamer
