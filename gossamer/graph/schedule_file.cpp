#include "gossamer/graph/schedule_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "gossamer/base/cluster.h"
#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/json.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr double kNearOne = 1e-5;  ///< sums that are meant to be 1

/// A round of a file, for messages.
struct Place {
  std::string name;
  std::size_t round = 0;
};

[[noreturn]] void refuse(const Place& place, const std::string& what, const std::string& got,
                         const std::string& remedy = {}) {
  fail_argument({.place = "topology",
                 .what = place.name + ", round " + std::to_string(place.round) + ": " + what,
                 .got = got,
                 .remedy = remedy});
}

std::string element(std::size_t i, std::size_t j, double weight) {
  return "W[" + std::to_string(i) + "][" + std::to_string(j) + "] = " + std::to_string(weight);
}

void check_weight(const Place& place, std::size_t i, std::size_t j, double weight) {
  if (std::isfinite(weight) && weight >= 0) return;
  refuse(place, "weights of W must be finite and not negative", element(i, j, weight));
}

/// Whether it is J, which hosts compute together.
bool is_mean_of_all(const Matrix& matrix) {
  const double share = 1.0 / static_cast<double>(matrix.size());
  return std::ranges::all_of(matrix, [&](const auto& row) {
    return std::ranges::all_of(row,
                               [&](double w) { return std::abs(w - share) < kNearOne * share; });
  });
}

Round round_of(const Place& place, const Matrix& matrix, int workers) {
  if (matrix.size() != at(workers)) {
    refuse(place, "W must have a row for each of the " + std::to_string(workers) + " workers",
           std::to_string(matrix.size()) + " rows");
  }
  std::vector<std::vector<Entry>> rows(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (matrix[i].size() != matrix.size()) {
      refuse(place,
             "row " + std::to_string(i) + " of W must have " + std::to_string(workers) + " weights",
             std::to_string(matrix[i].size()));
    }
    for (std::size_t j = 0; j < matrix.size(); ++j) {
      check_weight(place, i, j, matrix[i][j]);
      rows[i].push_back({static_cast<int>(j), matrix[i][j]});
    }
  }
  if (is_mean_of_all(matrix)) return complete_round(workers);
  return sparse_round(workers, std::move(rows));
}

// Which sums are 1.

struct Sums {
  std::vector<double> rows;
  std::vector<double> columns;
};

Sums sums_of(const Round& round) {
  Sums sums{std::vector<double>(at(round.workers), 0), std::vector<double>(at(round.workers), 0)};
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& entry : row_of(round, i)) {
      sums.rows[at(i)] += entry.weight;
      sums.columns[at(entry.worker)] += entry.weight;
    }
  }
  return sums;
}

/// A sum that is not 1.
struct Miss {
  std::size_t round = 0;
  std::size_t index = 0;
  double sum = 1;
};

std::optional<Miss> first_miss(std::span<const Sums> rounds,
                               const std::vector<double> Sums::*which) {
  for (std::size_t t = 0; t < rounds.size(); ++t) {
    const std::vector<double>& sums = rounds[t].*which;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (std::abs(sums[i] - 1) > kNearOne) return Miss{t, i, sums[i]};
    }
  }
  return std::nullopt;
}

std::string words(const char* kind, const Miss& miss) {
  return std::string(kind) + " " + std::to_string(miss.index) + " of round " +
         std::to_string(miss.round) + " with the sum " + std::to_string(miss.sum);
}

Stochasticity stochasticity_of(const std::string& name, std::span<const Round> rounds) {
  std::vector<Sums> sums;
  for (const Round& round : rounds) sums.push_back(sums_of(round));
  const auto row = first_miss(sums, &Sums::rows);
  const auto column = first_miss(sums, &Sums::columns);
  if (row && column) {
    fail_argument(
        {.place = "topology",
         .what = name + ": all rows of W, or all its columns, must sum to 1 in each round",
         .got = words("row", *row) + " and " + words("column", *column),
         .remedy = "give the rest to the worker itself, W[i][i]"});
  }
  if (row) return Stochasticity::column;
  return column ? Stochasticity::row : Stochasticity::doubly;
}

/// Divides rows and columns in turn by sums that are nearly 1, until they are.
void make_exact(Round& round, Stochasticity kind) {
  constexpr int kTurns = 100;
  constexpr double kExact = 1e-12;
  const auto off = [](const std::vector<double>& sums) {
    double most = 0;
    for (const double sum : sums) most = std::max(most, std::abs(sum - 1));
    return most;
  };
  const auto divide = [&](const std::vector<double>& sums, bool by_row) {
    for (std::size_t i = 0; i < round.rows.size(); ++i) {
      for (Entry& entry : round.rows[i]) entry.weight /= sums[by_row ? i : at(entry.worker)];
    }
  };
  for (int turn = 0; turn < kTurns && !is_partition(round); ++turn) {
    const Sums sums = sums_of(round);
    const bool rows_are = kind == Stochasticity::column || off(sums.rows) <= kExact;
    const bool columns_are = kind == Stochasticity::row || off(sums.columns) <= kExact;
    if (rows_are && columns_are) return;
    divide(rows_are ? sums.columns : sums.rows, !rows_are);
  }
}

// Names.

std::string digest_of(std::span<const Round> rounds) {
  std::uint64_t digest = rounds.size();
  const auto add = [&](std::uint64_t word) { digest = mix_bits(digest, word); };
  for (const Round& round : rounds) {
    add(round.groups.size());
    for (const auto& group : round.groups) {
      add(group.size());
      for (const int worker : group) add(static_cast<std::uint64_t>(worker));
    }
    for (const auto& row : round.rows) {
      add(row.size());
      for (const Entry& entry : row) {
        add(static_cast<std::uint64_t>(entry.worker));
        add(std::bit_cast<std::uint64_t>(entry.weight));
      }
    }
  }
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(digest >> 32));
  return text;
}

Schedule schedule_of(const std::string& name, std::vector<Round> rounds, const HostShape& shape) {
  const std::string full = name + "#" + digest_of(rounds);
  const Stochasticity kind = stochasticity_of(name, rounds);
  for (Round& round : rounds) make_exact(round, kind);
  return periodic_schedule(full, shape, std::move(rounds), kind);
}

// The file.

constexpr std::uint64_t kLargestFile = 256'000'000;

Json read_document(const std::string& path) {
  if (!is_there(path)) {
    fail_io({.place = "topology",
             .what = "cannot read the schedule " + path,
             .got = "no such file",
             .remedy = "give the path of a file {\"rounds\": [...]}, or a name of "
                       "`gossamer topology --list`"});
  }
  const FileBytes bytes = read_file(path, kLargestFile);
  const std::string_view text(reinterpret_cast<const char*>(bytes.memory.get()), bytes.size);
  const auto refuse_file = [&](const std::string& got) {
    fail_argument({.place = "topology",
                   .what = path + " must be JSON with \"rounds\", a list with W of each round",
                   .got = got,
                   .remedy = "for example {\"rounds\": [[[0.5, 0.5], [0.5, 0.5]]]}"});
  };
  Json document;
  try {
    document = parse_json(text);
  } catch (const std::invalid_argument& error) {
    refuse_file("what is " + std::string(error.what()));
  }
  if (!document.is_object()) refuse_file("JSON of type " + std::string(document.type_name()));
  const auto rounds = document.find("rounds");
  if (rounds == document.end()) refuse_file("no \"rounds\"");
  if (!rounds->is_array() || rounds->empty()) refuse_file("\"rounds\" that is no list, or empty");
  return document;
}

/// The number of a worker that stands there, or −1.
int worker_at(const Json& json) {
  const bool is_number = json.is_number_integer();
  const auto worker = is_number ? json.get<std::int64_t>() : -1;
  return worker >= 0 && worker < kMostWorkers ? static_cast<int>(worker) : -1;
}

/// As far as a round tells.
int workers_in(const Json& round) {
  if (round.is_array()) return static_cast<int>(std::min<std::size_t>(round.size(), kMostWorkers));
  int last = -1;
  const auto look = [&](const Json& lists, std::size_t most) {
    for (const Json& list : lists) {
      for (std::size_t k = 0; list.is_array() && k < std::min(list.size(), most); ++k) {
        last = std::max(last, worker_at(list[k]));
      }
    }
  };
  if (round.contains("edges")) look(round["edges"], 2);
  if (round.contains("groups")) look(round["groups"], kMostWorkers);
  return last + 1;
}

[[noreturn]] void refuse_part(const Place& place, const char* what, const Json& got) {
  constexpr std::size_t kMost = 60;
  std::string text = got.dump();
  if (text.size() > kMost) text = text.substr(0, kMost) + " ...";
  refuse(place, what, text);
}

Matrix matrix_of(const Place& place, const Json& json) {
  Matrix matrix;
  for (const Json& row : json) {
    const bool is_good = row.is_array() && std::ranges::all_of(row, [](const Json& weight) {
                           return weight.is_number();
                         });
    if (!is_good) refuse_part(place, "a row of W must be a list of numbers", row);
    matrix.push_back(row.get<std::vector<double>>());
  }
  return matrix;
}

Round round_of_edges(const Place& place, const Json& edges, int workers) {
  std::vector<std::vector<Entry>> rows(at(workers));
  const auto number = [&](const Json& edge, std::size_t k) {
    const int worker = worker_at(edge[k]);
    return worker < workers ? worker : -1;
  };
  for (const Json& edge : edges) {
    const bool is_edge = edge.is_array() && edge.size() == 3 && edge[2].is_number();
    if (!is_edge || number(edge, 0) < 0 || number(edge, 1) < 0) {
      refuse_part(place, "an edge must be [receiver, sender, weight], of workers from 0 up", edge);
    }
    const int receiver = number(edge, 0);
    const int sender = number(edge, 1);
    check_weight(place, at(receiver), at(sender), edge[2].get<double>());
    rows[at(receiver)].push_back({sender, edge[2].get<double>()});
  }
  for (int i = 0; i < workers; ++i) {
    double left = 1;
    for (const Entry& entry : rows[at(i)]) left -= entry.weight;
    const bool has_self = std::ranges::find(rows[at(i)], i, &Entry::worker) != rows[at(i)].end();
    if (!has_self && left > kNearOne) rows[at(i)].push_back({i, left});
  }
  return sparse_round(workers, std::move(rows));
}

Round round_of_groups(const Place& place, const Json& groups, int workers) {
  std::vector<std::vector<int>> all;
  for (const Json& group : groups) {
    const auto is_worker = [](const Json& worker) { return worker_at(worker) >= 0; };
    if (!group.is_array() || !std::ranges::all_of(group, is_worker)) {
      refuse_part(place, "a group must be a list of workers from 0 up", group);
    }
    all.push_back(group.get<std::vector<int>>());
  }
  try {
    return partition_round(workers, std::move(all));
  } catch (const std::invalid_argument& error) {
    const std::string said = error.what();
    refuse(place, said.substr(said.find("] ") + 2), "");
  }
}

Round round_of(const Place& place, const Json& json, int workers) {
  if (json.is_array()) return round_of(place, matrix_of(place, json), workers);
  const bool has_one = json.is_object() && json.size() == 1 && json.begin()->is_array();
  if (has_one && json.contains("edges")) return round_of_edges(place, json["edges"], workers);
  if (has_one && json.contains("groups")) return round_of_groups(place, json["groups"], workers);
  refuse_part(place, "a round must be a list of rows, {\"edges\": [...]} or {\"groups\": [...]}",
              json);
}

/// Throws where there are none.
int workers_in_file(const std::string& path, const Json& document) {
  int workers = document.contains("workers") ? worker_at(document["workers"]) : 0;
  const bool is_said = workers > 0;
  for (const Json& round : document["rounds"]) {
    if (!is_said) workers = std::max(workers, workers_in(round));
  }
  if (workers > 0) return workers;
  round_of({path, 0}, document["rounds"].front(), 1);
  fail_argument({.place = "topology", .what = path + " has no workers in its rounds"});
}

}  // namespace

Schedule schedule_from_matrices(std::span<const Matrix> matrices, const HostShape& shape) {
  std::vector<Round> rounds;
  for (const Matrix& matrix : matrices) {
    rounds.push_back(round_of({"matrices", rounds.size()}, matrix, shape.workers()));
  }
  if (rounds.empty()) {
    fail_argument({.place = "topology", .what = "a schedule needs at least one matrix"});
  }
  return schedule_of("matrices", std::move(rounds), shape);
}

bool is_schedule_file(std::string_view topology) { return topology.ends_with(".json"); }

Schedule schedule_from_file(const std::string& path, const HostShape& shape) {
  const Json document = read_document(path);
  const int workers = workers_in_file(path, document);
  if (workers != shape.workers()) {
    const std::string got = std::to_string(shape.workers());
    fail_argument({.place = "topology",
                   .what = path + " is for " + std::to_string(workers) +
                           (workers == 1 ? " worker" : " workers"),
                   .got = got,
                   .remedy = "take as many workers, or give a file for " + got +
                             "; where workers have no edges, say \"workers\": " + got + " in it"});
  }
  std::vector<Round> rounds;
  for (const Json& round : document["rounds"]) {
    rounds.push_back(round_of({path, rounds.size()}, round, workers));
  }
  const std::string name = std::filesystem::path(path).filename().string();
  return schedule_of(name, std::move(rounds), shape);
}

HostShape shape_in_file(const std::string& path) {
  const Json document = read_document(path);
  const int workers = workers_in_file(path, document);
  const auto hosts = document.find("workers_per_host");
  if (hosts != document.end() && hosts->is_array()) {
    HostShape shape;
    for (const Json& host : *hosts) shape.workers_per_host.push_back(worker_at(host));
    const bool is_good = std::ranges::all_of(shape.workers_per_host, [](int n) { return n > 0; });
    const std::vector<int>& counts = shape.workers_per_host;
    const auto in_all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (is_good && in_all == workers) return shape;
  }
  return even_hosts(workers, 1);
}

}  // namespace gossamer
