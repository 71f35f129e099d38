#include "gossamer/engine/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kBetweenPolls{2};
/// Who is there may have begun so many steps more than it has done.
constexpr std::int64_t kBegun = 2;
/// A newcomer begins at least so many steps later than those that are there have come to. The
/// furthest of them may answer after two more steps, of which it has begun kBegun more.
constexpr std::int64_t kMargin = 5;
/// And so many spans of Pace later, or, where answers come slowly, so many times what they took.
constexpr double kLeastSpans = 1;
constexpr double kMostSpans = 10;
constexpr double kTimesTaken = 2;
/// Of the most steps in a span so much counts after the next one.
constexpr double kRemembered = 0.98;

/// So long others may notice the end of a worker later than a newcomer does.
constexpr std::chrono::seconds kTimeToNotice{2};
constexpr std::chrono::milliseconds kBetweenQuestions{20};

/// Of the questions of one generation.
constexpr int kBitsOfQuestions = 32;

constexpr const char* kOtherWorkers = "it does not hear the same workers as the others";

/// What is said about a question. Of a generation that has been replaced nothing is taken for its
/// successor's, whose connection it may go over.
enum class About : std::int32_t { question, answer, state };
Tag tag_of(About about, std::uint64_t generation, std::int64_t number) {
  const auto of_it = static_cast<std::int64_t>(generation << kBitsOfQuestions);
  return {of_it | number, kNewcomers, static_cast<std::int32_t>(about)};
}

/// Whether two of AdmissionWord::there are, as far as both say it.
bool are_equal(std::uint64_t one, std::uint64_t other) {
  return one == 0 || other == 0 || one == other;
}

std::span<std::byte> bytes_of(AdmissionWord& word) {
  return std::as_writable_bytes(std::span(&word, 1));
}

}  // namespace

std::uint64_t code_of(const std::vector<int>& ranks) {
  std::uint64_t code = 0;
  for (const int rank : ranks) code ^= mix_bits(static_cast<std::uint64_t>(rank), 0);
  return code | 1U;
}

// Questions and answers.

Reception::~Reception() {
  for (const Guest& guest : guests_) transport_.release(guest.request);
  for (const AdmissionAnswer& answer : answers_) release(answer);
}

void Reception::release(const AdmissionAnswer& answer) {
  for (const Request request : answer.requests) transport_.release(request);
}

void Reception::ask_next(Guest& guest) {
  const Tag tag = tag_of(About::question, guest.who.generation, guest.number);
  guest.request =
      transport_.receive(guest.who.peer, tag, bytes_of(guest.question), Deadline::max());
}

/// A former generation asks no more.
void Reception::open_to(const Newcomer& newcomer) {
  std::erase_if(guests_, [&](const Guest& guest) {
    if (guest.who.peer != newcomer.peer) return false;
    transport_.release(guest.request);
    return true;
  });
  std::erase_if(answers_, [&](const AdmissionAnswer& answer) {
    if (answer.peer != newcomer.peer) return false;
    release(answer);
    return true;
  });
  ask_next(guests_.emplace_back(Guest{.who = newcomer}));
}

std::vector<Newcomer> Reception::look(const std::function<void(Guest& guest)>& answer) {
  std::vector<Newcomer> newcomers = transport_.newcomers();
  for (const Newcomer& newcomer : newcomers) open_to(newcomer);
  for (Guest& guest : guests_) look(guest, answer);
  std::erase_if(guests_, [&](const Guest& guest) {
    if (guest.is_lost) transport_.release(guest.request);
    return guest.is_lost;
  });
  std::erase_if(answers_, [&](const AdmissionAnswer& sent) {
    const bool has_left = std::ranges::none_of(sent.requests, [&](Request request) {
      return transport_.poll(request).state == Status::State::pending;
    });
    if (has_left) release(sent);
    return has_left;
  });
  return newcomers;
}

void Reception::look(Guest& guest, const std::function<void(Guest& guest)>& answer) {
  while (!guest.is_lost && !guest.waits_for_state) {
    const Status status = transport_.poll(guest.request);
    if (status.state == Status::State::pending) return;
    if (status.state == Status::State::failed) {
      guest.is_lost = true;
      return;
    }
    land(status, &guest.question);
    transport_.release(std::exchange(guest.request, 0));
    answer(guest);
  }
}

void Reception::answer(Guest& guest, const AdmissionWord& word, std::string state) {
  AdmissionAnswer& answer = answers_.emplace_back(AdmissionAnswer{
      .peer = guest.who.peer, .word = word, .state = std::move(state), .requests = {}});
  const auto send = [&](About about, std::span<const std::byte> bytes) {
    const Tag tag = tag_of(about, guest.who.generation, guest.number);
    answer.requests.push_back(transport_.send(guest.who.peer, tag, bytes, Deadline::max()));
  };
  send(About::answer, bytes_of(answer.word));
  if (!answer.state.empty()) send(About::state, std::as_bytes(std::span(answer.state)));
  ++guest.number;
  ask_next(guest);
}

// Who is there.

void Pace::look(std::int64_t steps, Clock::time_point now) {
  if (before_ < 0 || now >= begin_ + kSpan) {
    most_ = std::max(most_ * kRemembered, static_cast<double>(in_it_));
    begin_ = now;
    before_ = steps;
  }
  in_it_ = steps - before_;
}

std::int64_t Pace::most() const {
  return std::max(static_cast<std::int64_t>(std::ceil(most_)), in_it_);
}

std::uint64_t Admission::there_without(int guest) const {
  if (!there_) return 0;
  std::vector<int> ranks = there_();
  std::erase(ranks, guest);
  return code_of(ranks);
}

void Admission::look(std::int64_t steps) {
  pace_.look(steps, Clock::now());
  reception_->look([&](Guest& guest) {
    const std::uint64_t there = there_without(guest.who.peer);
    switch (guest.question.kind) {
      case AdmissionWord::Kind::coming:
      case AdmissionWord::Kind::where:
        return reception_->answer(guest, {.kind = AdmissionWord::Kind::where,
                                          .steps = steps,
                                          .most = pace_.most(),
                                          .there = there});
      case AdmissionWord::Kind::state:
        guest.waits_for_state = true;
        return;
      case AdmissionWord::Kind::begin: {
        const bool is_yes =
            guest.question.steps >= steps + kBegun && are_equal(there, guest.question.there);
        if (is_yes) {
          transport_.let_in(guest.who);
          if (!agrees_) transport_.count_in(guest.who.peer);
          lost_.come_back(guest.who.peer, guest.question.steps);
        }
        return reception_->answer(guest, {.kind = AdmissionWord::Kind::begin,
                                          .is_yes = is_yes ? 1 : 0,
                                          .steps = steps,
                                          .there = there});
      }
    }
  });
}

std::vector<int> Admission::waiting_for_state() {
  std::vector<int> peers;
  for (const Guest& guest : reception_->guests()) {
    if (guest.waits_for_state && !guest.is_lost) peers.push_back(guest.who.peer);
  }
  return peers;
}

void Admission::give_state(int peer, std::int64_t steps, std::string state) {
  for (Guest& guest : reception_->guests()) {
    if (guest.who.peer != peer || !guest.waits_for_state || guest.is_lost) continue;
    guest.waits_for_state = false;
    const AdmissionWord word{.kind = AdmissionWord::Kind::state,
                             .is_yes = state.empty() ? 0 : 1,
                             .steps = steps,
                             .bytes = std::ssize(state)};
    reception_->answer(guest, word, std::move(state));
  }
}

// The newcomer.

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
