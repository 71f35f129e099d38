#pragma once
/// Traces as files: from the recorders of one process, for Perfetto and `gossamer report`.

#include <filesystem>
#include <span>

#include "gossamer/base/cluster.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/recorder.h"

namespace gossamer {

/// Lets all workers' traces begin at one moment: now, by the system clock of rank 0. Collective; on
/// other hosts it is as exact as their clocks agree.
void share_start(Recorder& recorder, Collectives& collectives);

/// The file of a worker that is a process of its own: trace.rank<rank>.json.gz.
std::filesystem::path trace_file_of(const std::filesystem::path& folder, int rank);

/// Writes what the recorders have, but for those that share no start with others: whole or not at
/// all, packed where the name ends in .gz; no file where there is nothing to write. Null recorders
/// are left out. Throws IoError.
void write_trace_file(const std::filesystem::path& file, std::span<const Recorder* const> recorders,
                      const HostShape& shape);

/// Removes what traces a run has left in its folder, be it of threads or of processes.
void remove_traces(const std::filesystem::path& folder);

}  // namespace gossamer
