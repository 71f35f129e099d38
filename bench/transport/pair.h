#pragma once
/// One end of a pair of processes that does what it is told, line by line; see run.py.

#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

namespace pair_bench {

inline constexpr std::size_t kMostBytes = std::size_t{64} << 20;
inline constexpr std::size_t kWordBytes = 8;

/// What is done with a payload that has arrived, before its memory is given back.
using Look = std::function<void(std::span<const std::byte>)>;

struct Transfer {
  std::size_t bytes = 0;
  bool sends = true;
  bool receives = true;
};

/// Gives this end's words to the other one and returns its words; through files of `folder`.
inline std::string swap_words(const std::string& folder, int rank, const std::string& mine) {
  const auto place = [&](int of) { return folder + "/words." + std::to_string(of); };
  {
    std::ofstream file(place(rank) + ".part", std::ios::binary);
    file << mine;
  }
  std::filesystem::rename(place(rank) + ".part", place(rank));
  for (int left = 3000; left > 0; --left) {
    if (std::filesystem::exists(place(1 - rank))) {
      std::ifstream file(place(1 - rank), std::ios::binary);
      return {std::istreambuf_iterator<char>(file), {}};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("the other end did not come");
}

/// What byte `at` of the payload of `rank` is.
inline std::byte pattern(int rank, std::size_t at) {
  return static_cast<std::byte>((at * 2654435761U + static_cast<std::size_t>(rank)) >> 9U);
}

inline double cpu_s() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Both ways at once, or from rank 0 to rank 1 with a word back.
template <class Link>
void run_once(Link& link, int rank, const std::string& way, std::size_t bytes, const Look& look) {
  if (way == "exchange") {
    link.transfer({.bytes = bytes}, look);
    return;
  }
  const bool is_source = rank == 0;
  link.transfer({.bytes = bytes, .sends = is_source, .receives = !is_source}, look);
  link.transfer({.bytes = kWordBytes, .sends = !is_source, .receives = is_source}, look);
}

/// Obeys lines "<check | exchange | forward> <bytes> <times>" until the input ends; answers each
/// with "<seconds> <CPU seconds>". `link` has outgoing(), kMostBytes to send from, and
/// transfer(Transfer, Look), which returns when all of it is done.
template <class Link>
int obey(Link& link, int rank) {
  const std::span<std::byte> outgoing = link.outgoing();
  for (std::size_t i = 0; i < outgoing.size(); ++i) outgoing[i] = pattern(rank, i);
  const Look check = [&](std::span<const std::byte> payload) {
    for (std::size_t i = 0; i < payload.size(); ++i) {
      if (payload[i] == pattern(1 - rank, i)) continue;
      std::cerr << "byte " << i << " of " << payload.size() << " is wrong\n";
      std::exit(1);
    }
  };
  const Look nothing = [](std::span<const std::byte>) {};
  std::string way;
  std::size_t bytes = 0;
  int times = 0;
  while (std::cin >> way >> bytes >> times) {
    const bool checks = way == "check";
    link.transfer({.bytes = kWordBytes}, nothing);  // both are here
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_s();
    for (int i = 0; i < times; ++i) {
      run_once(link, rank, checks ? "exchange" : way, bytes, checks ? check : nothing);
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::cout << passed.count() << ' ' << cpu_s() - cpu_start << std::endl;
  }
  return 0;
}

}  // namespace pair_bench
