#include "gossamer/engine/stop_along_tree.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kNapOfDelivery{5};
constexpr std::chrono::seconds kLastWords{2};

Tag tag_of(std::int32_t word) { return {.step = 0, .stream = stream::kStop, .slot = word}; }

Tree tree_among_all(const TransportInfo& info) {
  return tree_of({HostShape{{info.workers}}, info.rank});
}

}  // namespace

StopAlongTree::StopAlongTree(Transport& transport)
    : transport_(transport), tree_(tree_among_all(transport.describe())) {
  std::vector<int> neighbours = tree_.children;
  if (tree_.parent >= 0) neighbours.push_back(tree_.parent);
  for (const int peer : neighbours) {
    for (const Word word : {Word::stop, Word::largest}) {
      ears_.push_back(std::make_unique<Ear>(Ear{.peer = peer, .word = word}));
      Ear& ear = *ears_.back();
      ear.request =
          transport.receive(peer, tag_of(static_cast<std::int32_t>(word)),
                            std::as_writable_bytes(std::span(&ear.value, 1)), Deadline::max());
    }
  }
}

StopAlongTree::~StopAlongTree() {
  try {
    deliver();
  } catch (const std::exception&) {  // the transport has ended, and with it whoever waits
  }
  for (const auto& ear : ears_) transport_.release(ear->request);
  for (const auto& mouth : mouths_) transport_.release(mouth->request);
}

/// A send that is released before it has left is taken back. Who has found out early would keep the
/// others waiting for ever.
void StopAlongTree::deliver() {
  const Deadline limit = Clock::now() + kLastWords;
  for (const auto& mouth : mouths_) {
    if (mouth->word != Word::largest) continue;
    while (transport_.poll(mouth->request).state == Status::State::pending &&
           Clock::now() < limit) {
      transport_.progress(Clock::now() + kNapOfDelivery);
    }
  }
}

void StopAlongTree::say(int peer, Word word, std::int64_t value) {
  mouths_.push_back(std::make_unique<Mouth>(Mouth{.word = word, .value = value}));
  Mouth& mouth = *mouths_.back();
  mouth.request = transport_.send(peer, tag_of(static_cast<std::int32_t>(word)),
                                  std::as_bytes(std::span(&mouth.value, 1)), Deadline::max());
}

/// Whether there is news.
bool StopAlongTree::hear(Ear& ear) {
  if (ear.request == 0) return false;
  const Status status = transport_.poll(ear.request);
  if (status.state == Status::State::pending) return false;
  const bool has_come = status.state == Status::State::done;
  if (!has_come && ear.word == Word::largest) lost_ = status.error;
  if (has_come) land(status, reinterpret_cast<std::byte*>(&ear.value));
  transport_.release(ear.request);
  ear.request = 0;
  if (has_come && ear.word == Word::largest) take(ear);
  return has_come;
}

void StopAlongTree::take(const Ear& ear) {
  if (ear.peer == tree_.parent) {
    last_step_ = ear.value;
    for (const int child : tree_.children) say(child, Word::largest, ear.value);
  } else {
    largest_ = std::max(largest_, ear.value);
    ++heard_;
  }
}

void StopAlongTree::begin(std::int64_t bid, int signal) {
  has_begun_ = true;
  largest_ = std::max(largest_, bid);
  if (tree_.parent >= 0) say(tree_.parent, Word::stop, signal);
  for (const int child : tree_.children) say(child, Word::stop, signal);
  pass_on();
}

/// Up, once the whole subtree is known; down from the root.
void StopAlongTree::pass_on() {
  if (!has_begun_ || has_gone_up_ || heard_ < tree_.children.size()) return;
  has_gone_up_ = true;
  if (tree_.parent >= 0) {
    say(tree_.parent, Word::largest, largest_);
    return;
  }
  last_step_ = largest_;
  for (const int child : tree_.children) say(child, Word::largest, largest_);
}

int StopAlongTree::hear() {
  for (const auto& ear : ears_) {
    const bool is_news = hear(*ear) && ear->word == Word::stop;
    if (is_news && signal_ == 0) signal_ = static_cast<int>(ear->value);
  }
  pass_on();
  return signal_;
}

}  // namespace gossamer
