#pragma once
/// How strongly workers mix, as the commands of `gossamer theory` are told.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "gossamer/base/json.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/model/convergence.h"

namespace gossamer {

struct MixingFlags {
  ScheduleSpec spec{.topology = "ring"};
  int hosts = 0;  ///< 0: default_hosts, or as many as per_host has numbers
  int default_hosts = 16;
  std::string per_host = "1";
  std::optional<double> rho;  ///< in place of the topology's
};

/// Adds the topology, positional, its modifiers and the hosts.
void add_mixing_flags(CLI::App& app, MixingFlags& flags);

/// The flag `name`, a number from 0 to 1 that takes the place of the topology's ρ.
void add_rho_flag(CLI::App& app, const std::string& name, MixingFlags& flags);

/// For --help: what rho is of a schedule.
extern const char* const kRhoHelp;

struct TheoryMixing {
  std::string text;      ///< "ring, 16 hosts x 1 worker = 16 workers"
  std::string topology;  ///< with its modifiers; empty where ρ was given
  HostShape shape;
  MixingStrength strength;
};

/// Throws std::invalid_argument that begins with `place`.
TheoryMixing mixing_of(const MixingFlags& flags, const std::string& place);

/// {"topology", "workers", "rho"}.
Json to_json(const TheoryMixing& mixing);

}  // namespace gossamer
