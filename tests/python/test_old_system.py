"""A program that is linked for older systems: it asks for nothing that they lack, and works."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

MAKE = ROOT / "tools" / "old_system" / "make.py"
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
WITHOUT_CLOCKWAIT = 'extern "C" void* dlsym(void*, const char*) { return nullptr; }'
PROGRAM = r"""
#include <sys/stat.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <iostream>
#include <new>
#include <sstream>
#include <string>

ELSEWHERE

#if defined(__x86_64__)
bool has_an_instruction() { return __builtin_cpu_supports("avx512vnni") != 0; }
#endif

const std::string made_before_main = "made before main";

int main(int count, char** words) {
  std::cout << made_before_main << '\n';

  const std::string text = "1.5e3";
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  char digits[64];
  const auto end_of_digits = std::to_chars(digits, digits + 64, 0.1).ptr;
  std::cout << value << ' ' << std::string(digits, end_of_digits) << '\n';

  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  const auto status = never.wait_until(lock, end);
  std::cout << (status == std::cv_status::timeout);
  std::cout << (std::chrono::steady_clock::now() >= end) << '\n';

  std::ostringstream stream;
  stream << std::hypot(3.0 * count, 4.0 * count) / count << std::pow(2.0, 10.0 * count / count);
  std::cout << std::move(stream).str() << '\n';

  auto future = std::async(std::launch::async, [] {
    std::runtime_error error("thrown");
    throw std::runtime_error(std::move(error));
  });
  std::exception_ptr first;
  try {
    future.get();
  } catch (...) {
    first = std::current_exception();
  }
  std::exception_ptr second = first;
  first = nullptr;
  try {
    std::rethrow_exception(second);
  } catch (const std::exception& error) {
    std::cout << error.what() << std::uncaught_exceptions() << '\n';
  }

  try {
    std::cout << std::filesystem::file_size(std::string(words[0]) + "/nowhere");
  } catch (const std::filesystem::filesystem_error& error) {
    std::cout << (error.code() == std::errc::not_a_directory) << '\n';
  }
  struct stat facts;
  std::cout << stat(words[0], &facts) << lstat(words[0], &facts) << fstat(0, &facts);
  std::cout << stat("/no/where", &facts) << std::filesystem::exists(words[0]) << '\n';

  try {
    volatile long size = -count;
    std::cout << new int[size];
  } catch (const std::bad_array_new_length&) {
    std::cout << "bad length\n";
  }
}
"""
SAID = "made before main\n1500 0.1\n11\n51024\nthrown0\n1\n000-11\nbad length\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("old_system")
    subprocess.run([sys.executable, MAKE, made, "c++"], check=True, timeout=300)
    return made


@pytest.mark.parametrize("elsewhere", ["", WITHOUT_CLOCKWAIT], ids=["here", "without clockwait"])
def test_a_program_works_and_asks_for_nothing_newer(folder: Path, elsewhere: str) -> None:
    source = folder / "program.cpp"
    source.write_text(PROGRAM.replace("ELSEWHERE", elsewhere))
    program = folder / "program"
    link = (ROOT / "cmake" / "OldSystem.cmake").read_text()
    flags = re.search(r"add_link_options\((.*?)\)", link, re.DOTALL)
    assert flags is not None
    options = flags[1].replace("${GOSSAMER_OLD_SYSTEM}", str(folder)).split()
    subprocess.run(
        ["c++", "-std=c++20", "-O1", "-D_GLIBCXX_ASSERTIONS", *options, source, "-o", program],
        check=True,
        timeout=300,
    )
    module = ["-shared", "-fPIC", "-Wl,-z,defs", "-o", str(folder / "module.so")]
    subprocess.run(["c++", "-std=c++20", "-O1", *options, source, *module], check=True, timeout=300)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == (SAID, 0)
    symbols = subprocess.run(
        ["readelf", "-VW", program], capture_output=True, text=True, check=True
    )
    asked = re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([\d.]+)", symbols.stdout)
    assert {"GLIBC", "GLIBCXX", "CXXABI"} == {name for name, _ in asked}
    newer = [pair for pair in asked if tuple(map(int, pair[1].split("."))) > NEWEST[pair[0]]]
    assert newer == []
