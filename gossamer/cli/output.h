#pragma once
/// The end of what a command prints.

namespace gossamer {

/// Brings to stdout what was printed, by C's functions or std::cout. Where some of it is lost, says
/// so on stderr and returns kExitFailed, else `code`.
int finish_output(int code);

}  // namespace gossamer
