#pragma once
/// For tests: what an error says.

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace gossamer {

/// The message of the E that `f` throws; empty, with a failure, when it throws none.
template <class E = std::exception, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace gossamer
