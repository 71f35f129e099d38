#include "gossamer/engine/trace_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/base/test_folder.h"

namespace gossamer {
namespace {

using Kind = TimelineEvent::Kind;

/// The names of the processes in a trace.
std::vector<std::string> workers_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> names;
  const Json trace = Json::parse(in);
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
  }
  return names;
}

TEST(TraceFile, HasTheRecordersThatShareAStart) {
  const ScratchFolder folder;
  const auto file = folder.path() / "trace.json";
  Recorder first(0, 4);
  Recorder second(1, 4);
  Recorder third(2, 4);
  for (Recorder* recorder : {&first, &second, &third}) recorder->did(Kind::forward);
  const std::vector<const Recorder*> all{&first, nullptr, &second, &third};
  write_trace_file(file, all, {{2, 1}});
  EXPECT_FALSE(std::filesystem::exists(file));
  const auto start = std::chrono::system_clock::now();
  first.set_start(start);
  third.set_start(start);
  write_trace_file(file, all, {{2, 1}});
  EXPECT_EQ(workers_in(file), (std::vector<std::string>{"worker 0, host 0", "worker 2, host 1"}));
}

TEST(TraceFile, IsRefusedWhereTheFolderIsMissing) {
  const ScratchFolder folder;
  Recorder recorder(0, 4);
  recorder.set_start(std::chrono::system_clock::now());
  recorder.did(Kind::forward);
  const Recorder* const all[] = {&recorder};
  EXPECT_THROW(write_trace_file(trace_file_of(folder.path() / "none", 3), all, {{1}}), IoError);
}

TEST(TraceFile, OnlyTracesAreRemoved) {
  const ScratchFolder folder;
  const char* const names[] = {"trace.json.gz", "trace.rank0.json.gz", "trace.rank12.json.gz",
                               "run.toml",      "trace.json",          "my.trace.json.gz"};
  for (const char* name : names) std::ofstream(folder.path() / name) << "x";
  EXPECT_EQ(trace_file_of(folder.path(), 12), folder.path() / names[2]);
  remove_traces(folder.path());
  for (std::size_t k = 0; k < std::size(names); ++k) {
    EXPECT_EQ(std::filesystem::exists(folder.path() / names[k]), k >= 3) << names[k];
  }
  remove_traces(folder.path() / "none");
}

}  // namespace
}  // namespace gossamer
