#pragma once
/// Errors of the three kinds the project knows: the caller's, the outside world's, and bugs.

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gossamer {

/// The parts of a message: `[place] what, got value; remedy`. Empty parts are left out.
struct Complaint {
  std::string_view place;
  std::string_view what;
  std::string got = {};
  std::string remedy = {};
};

/// Text of a file, a peer or a command line as a terminal may be given it: control characters,
/// those of Unicode included, and bytes that are not UTF-8 are written as \xNN.
std::string printable(std::string_view text);

/// One printable line from the parts of a complaint.
std::string to_string(const Complaint& complaint);

/// Throws std::invalid_argument: the caller's mistake.
[[noreturn]] void fail_argument(const Complaint& complaint);

/// fail_argument unless `good`.
void check_argument(std::string_view place, bool good, std::string_view what,
                    const std::string& got);

/// A file, a folder or a device did not do what it should: missing, truncated, altered, full.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws IoError.
[[noreturn]] void fail_io(const Complaint& complaint);

/// What kind of failure a transfer had, for those who go on without it.
enum class Fault {
  lost,      ///< the peer is not there any more: it ended, left, or was closed here
  silent,    ///< nothing has come from the peer for long; it may not be there any more
  expelled,  ///< the peer has heard nothing of this worker for long, and goes on without it
  replaced,  ///< another process is this worker now: the same rank, a later generation
  refused,   ///< the peer does not make this transfer: one of both sides was empty
  late,      ///< the peer is there and has not done its part within the deadline
  other,
};

/// A peer or a link did not do its part within the deadline.
class TransportError : public std::runtime_error {
 public:
  struct Details {
    int rank = -1;
    int peer = -1;
    std::string operation;
    double elapsed_s = 0;
    std::string reason;
    Fault fault = Fault::other;
    std::optional<int> unheard = {};  ///< a worker that said nothing meanwhile, for which all wait
  };

  explicit TransportError(Details details);
  const Details& details() const { return details_; }

 private:
  Details details_;
};

/// The valid name closest to `word` by edit distance; empty when none is close.
std::string nearest_name(std::string_view word, std::span<const std::string_view> valid);

/// Throws std::invalid_argument that lists the valid names and the nearest to what was given.
[[noreturn]] void fail_unknown_name(std::string_view place, std::string_view kind,
                                    std::string_view word, std::span<const std::string_view> valid);

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace gossamer

/// Throws std::logic_error: a bug in Gossamer, never the caller's mistake.
#define GOSSAMER_ASSERT(condition) \
  ((condition) ? void(0) : ::gossamer::assertion_failed(#condition, __FILE__, __LINE__))
