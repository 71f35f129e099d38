#pragma once
/// A method as a value: what is averaged with whom, when, and how it travels. The optimizer and its
/// rate are not in it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/codec.h"
#include "gossamer/exchange/pattern_facts.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/graph/schedule_spec.h"

namespace gossamer {

/// What a step does about neighbours whose payload has not come; see Note [Late neighbours].
enum class Late {
  wait,  ///< it waits for them
  skip,  ///< it goes on without them
};

/// What a step does about neighbours that are not there any more.
enum class Lost {
  error,  ///< it fails
  go_on,  ///< their edges are off; see Note [Without the lost]
};

/// With Lost::go_on a peer is gone on without once nothing has come from it for so long. That costs
/// one worker and not the run, so it is shorter than a transport's usual silence.
inline constexpr std::chrono::duration<double> kSuspectedAfter = std::chrono::seconds(5);
/// What may be asked for instead. Each says every second that it is there.
inline constexpr std::chrono::duration<double> kLeastSuspected = std::chrono::seconds(3);

/// A number that a pattern has beside the optimizer's: outer_every, consensus, …
struct PatternOption {
  std::string name;
  double value = 0;
  bool operator==(const PatternOption&) const = default;
};

/// The topology of patterns that average over everybody stays what it is by default.
struct MethodSpec {
  ScheduleSpec schedule = {.topology = "alternating_exponential_ring"};
  std::string pattern = "cwa";  ///< a row of pattern_facts(), or "ddp" to predict
  std::vector<PatternOption> options = {};
  Codec codec = Codec::fp32;                     ///< of payloads between hosts
  std::optional<GroupMethod> group_method = {};  ///< empty: the pattern's usual one
  std::optional<UpdateAt> update = {};           ///< empty: the pattern's usual one
  bool stagger = true;                           ///< bucket b follows the schedule at t + b
  Late late = Late::wait;
  std::int64_t staleness = 1;  ///< with Late::skip: steps that a payload may be old
  bool operator==(const MethodSpec&) const = default;
};

/// The pattern's row, that of ddp among them. Throws std::invalid_argument for an unknown name.
const PatternFacts& facts_of(const MethodSpec& method);

/// Whether it averages gradients over all workers in every step.
bool averages_gradients(const MethodSpec& method);

UpdateAt update_of(const MethodSpec& method);
GroupMethod group_method_of(const MethodSpec& method);

/// The option's value, or `usual`.
double option_of(const MethodSpec& method, std::string_view name, double usual);

/// The schedule of the topology, or everybody's average where the pattern has it so. Throws
/// std::invalid_argument for what the topology or the pattern cannot do on these hosts.
Schedule schedule_of(const MethodSpec& method, const HostShape& shape);

/// How the rounds of a pattern are compiled; the one place that decides it.
PlanOptions plan_options(const PatternFacts& pattern, GroupMethod group_method, Codec codec,
                         Late late);
PlanOptions plan_options(const MethodSpec& method);

/// What crosses between a device and the host's memory: who goes on without neighbours needs the
/// parameters in every mix.
DeviceCopies device_copies(const PatternFacts& pattern, Late late);

/// What is chosen beside pattern and schedule.
struct Choices {
  GroupMethod group_method = GroupMethod::hierarchical;
  Codec codec = Codec::fp32;
  UpdateAt update = UpdateAt::step;
  Late late = Late::wait;
  Lost lost = Lost::error;
};

/// Throws std::invalid_argument, which begins with `place`, for choices that do not go together.
void check_choices(std::string_view place, const PatternFacts& pattern, const Schedule& schedule,
                   const Choices& choices);

/// The same for the whole value on these hosts.
void check_method(const MethodSpec& method, const HostShape& shape);

/// A field of the value: `key` in TOML, as a flag (with dashes) and in Python, `word` in the name
/// of a method. `set` throws std::invalid_argument; `get` is empty where the field says nothing.
struct MethodField {
  std::string_view key;
  std::string_view word;  ///< empty: the value is a word of its own, such as int8
  void (*set)(MethodSpec& method, const std::string& value);
  std::string (*get)(const MethodSpec& method);
};

std::span<const MethodField> method_fields();

/// Reads PATTERN@TOPOLOGY[:WORD…], or a topology alone for cwa, or "allreduce", "ddp" alone. "ddp"
/// may have bf16 after it, torch's hook that compresses; fp16 is the same, for it sends as much.
/// Words are `word=value` of method_fields(), or a value that is a word of its own: "aer:bf16",
/// "atc@ring:rounds=2:local=4", "one_peer_ring:skip=2", "slowmo@complete:local=4:average=8:…". All
/// doors take this text. `other` gets the words that are none of a method's, and says whether it
/// knows them; without it they are refused. Throws std::invalid_argument for an unknown word.
MethodSpec parse_method(
    std::string_view text,
    const std::function<bool(const std::string& word, const std::string& value)>& other = nullptr);

/// The shortest text that parse_method() reads as this value, but for link_rates and seed, which
/// belong to the cluster and the run.
std::string name_of(const MethodSpec& method);

}  // namespace gossamer
