#include "gossamer/engine/arrival.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/admission.h"

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kBetweenPolls{2};
constexpr std::chrono::milliseconds kBetweenQuestions{20};
/// So long others may notice the end of a worker later than a newcomer does.
constexpr std::chrono::seconds kTimeToNotice{2};
/// A newcomer begins at least so many steps later than those that are there have come to. The
/// furthest of them may answer after two more steps, of which it has begun two more.
constexpr std::int64_t kMargin = 5;
/// And so many spans of Pace later, or, where answers come slowly, so many times what they took.
constexpr double kLeastSpans = 1;
constexpr double kMostSpans = 10;
constexpr double kTimesTaken = 2;

constexpr const char* kOtherWorkers = "it does not hear the same workers as the others";

}  // namespace

Arrival::Arrival(Transport& transport, std::vector<int> preferred, double timeout_s,
                 WhileWaiting while_waiting)
    : transport_(transport),
      rank_(transport.describe().rank),
      generation_(transport.generation(rank_)),
      reception_(std::make_unique<Reception>(transport)),
      timeout_s_(timeout_s),
      while_waiting_(std::move(while_waiting)),
      deadline_(deadline_after(timeout_s)) {
  transport.hold_back_newcomers();
  for (const int peer : preferred) {
    hosts_.push_back({.peer = peer});
    reception_->open_to({peer, transport.generation(peer)});
  }
}

/// They hear that this one is not there yet.
void Arrival::answer_others() {
  const std::vector<Newcomer> newcomers = reception_->look(
      [this](Guest& guest) { reception_->answer(guest, {.kind = AdmissionWord::Kind::coming}); });
  for (const auto& [peer, generation] : newcomers) {
    if (peer < rank_) fail("worker " + std::to_string(peer) + " comes back as well, and first");
    for (Host& host : hosts_) host.is_there = host.is_there && host.peer != peer;
  }
}

void Arrival::leave_out_absent() {
  std::erase_if(hosts_, [this](const Host& host) {
    if (!host.is_there) absent_.push_back(host.peer);
    return !host.is_there;
  });
}

/// Until the start is agreed on they may come first.
void Arrival::leave_out_coming() {
  for (Host& host : hosts_) host.is_there = host.is_there && !host.is_coming;
  leave_out_absent();
}

void Arrival::fail(const std::string& reason) const {
  throw TransportError({.rank = rank_,
                        .peer = hosts_.empty() ? 0 : hosts_.front().peer,
                        .operation = "",
                        .elapsed_s = 0,
                        .reason = "cannot come back: " + reason,
                        .fault = Fault::late});
}

/// Whether it is done; false where the peer is lost. A later generation of it does not answer what
/// the former one has been asked.
bool Arrival::finish(const Host& host, ScopedRequest request, void* landing) {
  Status status = transport_.poll(request.get());
  while (status.state == Status::State::pending) {
    if (!host.is_there) return false;
    if (Clock::now() > deadline_) fail("those that are there have not answered in time");
    transport_.progress(Clock::now() + kBetweenPolls);
    if (while_waiting_) while_waiting_();
    answer_others();
    status = transport_.poll(request.get());
  }
  const bool is_done = status.state == Status::State::done;
  if (is_done && landing != nullptr) land(status, landing);
  return is_done;
}

void Arrival::pause() {
  const Deadline until = Clock::now() + kBetweenQuestions;
  while (Clock::now() < until) {
    transport_.progress(until);
    if (while_waiting_) while_waiting_();
    answer_others();
  }
}

ScopedRequest Arrival::send(int peer, Tag tag, AdmissionWord& word) {
  return {transport_, transport_.send(peer, tag, bytes_of(word), Deadline::max())};
}

ScopedRequest Arrival::receive(int peer, Tag tag, std::span<std::byte> landing) {
  return {transport_, transport_.receive(peer, tag, landing, Deadline::max())};
}

bool Arrival::ask(Host& host, const AdmissionWord& question, AdmissionWord& answer) {
  AdmissionWord word = question;
  host.is_there =
      finish(host, send(host.peer, tag_of(About::question, generation_, host.number), word),
             nullptr) &&
      finish(host,
             receive(host.peer, tag_of(About::answer, generation_, host.number), bytes_of(answer)),
             &answer);
  host.is_coming = host.is_there && answer.kind == AdmissionWord::Kind::coming;
  return host.is_there;
}

/// The answers of all that are there. They come together: each at its own next step.
std::map<int, AdmissionWord> Arrival::ask_all(const AdmissionWord& question) {
  deadline_ = deadline_after(timeout_s_);
  leave_out_absent();
  std::vector<AdmissionWord> words(hosts_.size(), question);
  std::vector<AdmissionWord> answers(hosts_.size());
  std::vector<ScopedRequest> sends;
  std::vector<ScopedRequest> receives;
  for (std::size_t k = 0; k < hosts_.size(); ++k) {
    const auto& [peer, number, is_there, is_coming] = hosts_[k];
    receives.push_back(
        receive(peer, tag_of(About::answer, generation_, number), bytes_of(answers[k])));
    sends.push_back(send(peer, tag_of(About::question, generation_, number), words[k]));
  }
  std::map<int, AdmissionWord> heard;
  for (std::size_t k = 0; k < hosts_.size(); ++k) {
    const bool is_sent = finish(hosts_[k], std::move(sends[k]), nullptr);
    const bool is_heard = finish(hosts_[k], std::move(receives[k]), &answers[k]);
    Host& host = hosts_[k];
    host.is_there = host.is_there && is_sent && is_heard;
    host.is_coming = host.is_there && answers[k].kind == AdmissionWord::Kind::coming;
    ++host.number;
    if (host.is_there && !host.is_coming) heard[host.peer] = answers[k];
  }
  if (heard.empty()) fail("none of the others is there, or can be reached");
  return heard;
}

/// Until they are there, or lost: whether there were any. The others take this one for lost.
bool Arrival::wait_for_those_before() {
  bool has_waited = false;
  for (Host& host : hosts_) {
    while (host.is_coming && host.is_there && host.peer < rank_) {
      pause();
      AdmissionWord answer;
      ask(host, {.kind = AdmissionWord::Kind::where}, answer);
      ++host.number;
      has_waited = true;
    }
  }
  return has_waited;
}

std::vector<int> Arrival::there() const {
  std::vector<int> peers;
  for (const Host& host : hosts_) {
    if (host.is_there && !host.is_coming) peers.push_back(host.peer);
  }
  return peers;
}

Arrival::Heard Arrival::ask_how_far() {
  const auto asked = Clock::now();
  const auto answers = ask_all({.kind = AdmissionWord::Kind::where});
  Heard heard{.taken = Clock::now() - asked};
  const std::uint64_t own = code_of(there());
  for (const auto& [peer, answer] : answers) {
    heard.agree = heard.agree && are_equal(answer.there, own);
    heard.furthest = std::max(heard.furthest, answer.steps);
    heard.most = std::max(heard.most, answer.most);
  }
  return heard;
}

Arrival::Heard Arrival::agree_on_who_is_there() {
  for (const Deadline limit = Clock::now() + kTimeToNotice;;) {
    Heard heard = ask_how_far();
    if (heard.agree) return heard;
    if (Clock::now() > limit) fail(kOtherWorkers);
    pause();
  }
}

std::string Arrival::take_state() {
  ask_how_far();
  if (wait_for_those_before()) ask_how_far();
  agree_on_who_is_there();
  for (Host& host : hosts_) {
    if (!host.is_there || host.is_coming) continue;
    AdmissionWord answer;
    if (!ask(host, {.kind = AdmissionWord::Kind::state}, answer)) continue;
    if (answer.is_yes == 0) {
      ++host.number;
      continue;
    }
    std::string state(static_cast<std::size_t>(answer.bytes), '\0');
    host.is_there = finish(host,
                           receive(host.peer, tag_of(About::state, generation_, host.number),
                                   std::as_writable_bytes(std::span(state))),
                           state.data());
    ++host.number;
    if (host.is_there) return state;
  }
  fail("nobody that is there gives it a state");
}

std::int64_t Arrival::agree_on_start() {
  Heard heard = agree_on_who_is_there();
  while (wait_for_those_before()) heard = agree_on_who_is_there();  // who have gone on meanwhile
  const double spans =
      std::clamp(kTimesTaken * (heard.taken / std::chrono::duration<double>(Pace::kSpan)),
                 kLeastSpans, kMostSpans);
  const auto margin = static_cast<std::int64_t>(std::ceil(static_cast<double>(heard.most) * spans));
  const std::int64_t start = heard.furthest + std::max(kMargin, margin);
  for (const auto& [peer, answer] :
       ask_all({.kind = AdmissionWord::Kind::begin, .steps = start, .there = code_of(there())})) {
    if (!are_equal(answer.there, code_of(there()))) fail(kOtherWorkers);
    if (answer.is_yes == 0)
      fail("the others step too fast to come in at step " + std::to_string(start));
  }
  for (const Host& host : hosts_) {
    const bool goes_first = host.is_there && host.is_coming && host.peer < rank_;
    if (goes_first) fail("worker " + std::to_string(host.peer) + " comes back as well, and first");
  }
  leave_out_coming();
  return start;
}

}  // namespace gossamer
