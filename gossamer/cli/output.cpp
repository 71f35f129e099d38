#include "gossamer/cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "gossamer/base/errors.h"
#include "gossamer/cli/commands.h"

namespace gossamer {

int finish_output(int code) {
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  // What was lost earlier has left its mark only, and the system's reason is gone.
  if (is_flushed && std::cout && std::ferror(stdout) == 0) return code;
  // Whoever reads has had enough, as `head` has: nothing is wrong.
  pollfd reader{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) return kExitSignal + SIGPIPE;
  const Complaint complaint{.place = "gossamer",
                            .what = "cannot write to stdout",
                            .remedy = "the output is not complete: free space where it goes"};
  std::fprintf(stderr, "%s\n", to_string(complaint).c_str());
  return kExitFailed;
}

}  // namespace gossamer
