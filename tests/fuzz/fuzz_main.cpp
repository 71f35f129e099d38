// The program of libFuzzer: runs the target that GOSSAMER_FUZZ_TARGET names; `list` prints all.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const gossamer::FuzzTarget& wanted() {
  const char* word = std::getenv("GOSSAMER_FUZZ_TARGET");
  const std::string_view name = word ? word : "";
  for (const gossamer::FuzzTarget& target : gossamer::fuzz_targets()) {
    if (target.name == name) return target;
    if (name == "list") std::printf("%s\n", std::string(target.name).c_str());
  }
  if (name != "list") std::fprintf(stderr, "[fuzz] no target '%s'\n", std::string(name).c_str());
  std::exit(name == "list" ? 0 : 2);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wanted();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gossamer::FuzzTarget& target = wanted();
  target.run(std::as_bytes(std::span(data, size)));
  return 0;
}
