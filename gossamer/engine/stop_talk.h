#pragma once
/// StopTalk: what workers say to each other to agree on a last step.

#include <cstdint>
#include <exception>
#include <optional>

namespace gossamer {

/// One worker's end; see Note [Who stops when]. It is used by one thread at a time.
class StopTalk {
 public:
  virtual ~StopTalk() = default;
  /// Takes in what has come and passes it on; as often as one likes. By which signal a worker was
  /// told that this one has heard of, if any; 0: none.
  virtual int hear() = 0;
  /// This worker does no step beyond its bid until it knows the last one. Once.
  virtual void begin(std::int64_t bid, int signal) = 0;
  /// The largest bid, once it is known that all know it.
  virtual std::optional<std::int64_t> last_step() const = 0;
  /// Without which worker it will not be known any more; null: it may be.
  virtual std::exception_ptr lost() const = 0;
};

}  // namespace gossamer
