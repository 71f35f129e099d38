#pragma once
/// From tensors with their gradients, wherever these are, to the groups and segments of a step.

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/torch/tensors/flat_layout.h"

namespace gossamer {

/// The tensors of a step by parameter group and number of updates: what the engine calls groups.
class StepClasses {
 public:
  StepClasses() = default;
  explicit StepClasses(std::span<const Hyper> groups) : groups_(groups.begin(), groups.end()) {}

  int index_of(int group, std::int64_t t) {
    const auto found = std::ranges::find(known_, std::pair{group, t});
    if (found != known_.end()) return static_cast<int>(found - known_.begin());
    known_.emplace_back(group, t);
    classes_.push_back(groups_[at(group)]);
    classes_.back().t = t;
    return static_cast<int>(known_.size()) - 1;
  }
  /// By index; more are appended as they are asked for. Where nothing is stepped, the groups: what
  /// is only mixed takes the pattern's numbers of the first.
  const std::vector<Hyper>& all() const { return classes_.empty() ? groups_ : classes_; }

 private:
  std::vector<Hyper> groups_;
  std::vector<std::pair<int, std::int64_t>> known_;
  std::vector<Hyper> classes_;
};

/// The segments of all buckets, from ranges of the arrays in ascending order.
class SegmentLists {
 public:
  explicit SegmentLists(const FlatLayout& layout)
      : layout_(layout), lists_(layout.buckets.size()) {}

  /// Where the padding behind a slot ends.
  std::int64_t end_of(std::size_t s) const {
    const int array = layout_.slots[s].array;
    const bool last = s + 1 == layout_.slots.size() || layout_.slots[s + 1].array != array;
    return last ? layout_.arrays[at(array)].count : layout_.slots[s + 1].offset;
  }

  /// Elements [begin, end) of the slot's array, which may go through several buckets. `like` says
  /// what they are; its pointers are those of the first.
  void add(const ParameterSlot& slot, std::int64_t begin, std::int64_t end, Segment like) {
    const DType dtype = layout_.arrays[at(slot.array)].dtype;
    auto b = static_cast<std::size_t>(std::max(slot.first_bucket, 0));
    for (; b < lists_.size() && begin < end; ++b) {
      const BucketLayout& bucket = layout_.buckets[b];
      const std::int64_t to = std::min(end, bucket.first + bucket.count);
      if (bucket.array != slot.array || begin >= to) continue;
      like.offset = begin - bucket.first;
      like.count = to - begin;
      append(lists_[b], like);
      advance(like, static_cast<std::size_t>(to - begin) * size_of(dtype));
      begin = to;
    }
  }
  std::vector<Segment> take(std::size_t bucket) { return std::move(lists_[bucket]); }

 private:
  static void append(std::vector<Segment>& list, const Segment& segment) {
    const bool is_gap = segment.group == kGap;
    if (is_gap && !list.empty() && list.back().group == kGap) {
      list.back().count += segment.count;
    } else {
      list.push_back(segment);
    }
  }

  static void advance(Segment& segment, std::size_t bytes) {
    const auto moved = [bytes](auto*& pointer) {
      using Pointer = std::remove_reference_t<decltype(pointer)>;
      using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>,
                                      const std::byte, std::byte>;
      if (pointer != nullptr) pointer = static_cast<Byte*>(pointer) + bytes;
    };
    moved(segment.g);
    moved(segment.x);
    for (void*& state : segment.state) moved(state);
  }

  const FlatLayout& layout_;
  std::vector<std::vector<Segment>> lists_;
};

}  // namespace gossamer
