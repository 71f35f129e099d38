#pragma once
/// The part of IoError that the caller cannot mend by naming something else.

#include "gossamer/base/errors.h"

namespace gossamer {

/// A full disk, a folder that may not be written to, no sockets left: not a wrong or missing input.
/// The command line ends with 1 for it, and with 2 for every other IoError.
class OutsideError : public IoError {
 public:
  using IoError::IoError;
};

/// Throws OutsideError.
[[noreturn]] void fail_outside(const Complaint& complaint);

}  // namespace gossamer
