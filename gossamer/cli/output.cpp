#include "gossamer/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "gossamer/base/errors.h"
#include "gossamer/cli/commands.h"

namespace gossamer {

int finish_output(int code) {
  errno = 0;
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  // What was lost earlier has left its mark only.
  if (is_flushed && std::cout && std::ferror(stdout) == 0) return code;
  Complaint complaint{.place = "gossamer",
                      .what = "cannot write to stdout",
                      .remedy = "the output is not complete: free space where it goes"};
  if (errno != 0) complaint.got = "'" + std::system_category().message(errno) + "'";
  std::fprintf(stderr, "%s\n", to_string(complaint).c_str());
  return kExitFailed;
}

}  // namespace gossamer
