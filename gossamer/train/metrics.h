#pragma once
/// metrics.rank*.jsonl: one JSON object per line, one file per worker.

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "gossamer/base/json.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Writes nothing when the folder is empty, or without one.
class MetricsFile {
 public:
  MetricsFile() = default;
  /// Keeps what an earlier part of the run wrote up to step `first`; 0: nothing. Throws IoError
  /// when the file cannot be written.
  MetricsFile(const std::filesystem::path& folder, int rank, std::int64_t first);
  /// The first line that cannot be written is said on stderr and is the last that is tried: metrics
  /// must not cost what has been trained.
  void write(const Json& line);
  bool is_whole() const { return is_whole_; }

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  bool is_whole_ = true;
};

/// Bytes by peer so far: [{"peer": 1, "sent": …, "received": …}, …].
Json edges_json(const TransportInfo& info);

}  // namespace gossamer
