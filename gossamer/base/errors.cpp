#include "gossamer/base/errors.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

namespace gossamer {
namespace {

/// How many bytes of `text` are one character of UTF-8 that is none of control; 0: none.
std::size_t shown_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  unsigned code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr unsigned kFirstOfLength[] = {0, 0, 0xa0, 0x800, 0x10000};  // below 0xa0 is control
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code >= kFirstOfLength[length] && code <= 0x10ffff && !is_surrogate ? length : 0;
}

std::string transport_message(const TransportError::Details& d) {
  const std::string who = "[transport] worker " + std::to_string(d.rank) + ": ";
  if (d.operation.empty()) return printable(who + d.reason);
  char elapsed[32];
  std::snprintf(elapsed, sizeof elapsed, "%.3f", d.elapsed_s);
  return printable(who + d.operation + " with worker " + std::to_string(d.peer) + " failed after " +
                   elapsed + " s: " + d.reason);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

/// What people write who come from another program, and what it is called here.
constexpr std::pair<std::string_view, std::string_view> kHabits[] = {
    {"learning_rate", "lr"},
    {"batch_size", "global_batch"},
    {"batch", "global_batch"},
    {"epochs", "steps"},
    {"iterations", "steps"},
    {"max_steps", "steps"},
    {"wd", "weight_decay"},
    {"lr_scheduler", "lr_schedule"},
    {"warmup_steps", "warmup"},
    {"max_grad_norm", "clip_norm"},
    {"grad_clip", "clip_norm"},
    {"save_every", "checkpoint_every"},
    {"eval_every", "evaluate_every"},
    {"nodes", "hosts"},
    {"workers", "per_host"},
    {"nproc_per_node", "per_host"},
    {"bandwidth", "link_rate"},
    {"latency", "link_latency"},
    {"output", "out"},
    {"output_dir", "out"},
    {"dataset", "data"},
    {"fp16", "bf16"},
    {"half", "bf16"},
    {"ddp", "allreduce"},
    {"d2", "exact_diffusion"},
    {"dgd", "cwa"},
    {"all_reduce", "allreduce"},
};

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = shown_bytes(text);
    if (length > 0) {
      shown += text.substr(0, length);
    } else {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(text.front()));
      shown += code;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

std::string to_string(const Complaint& c) {
  std::string text = "[" + std::string(c.place) + "] " + std::string(c.what);
  if (!c.got.empty()) text += ", got " + c.got;
  if (!c.remedy.empty()) text += "; " + c.remedy;
  return printable(text);
}

void fail_argument(const Complaint& complaint) {
  throw std::invalid_argument(to_string(complaint));
}

void check_argument(std::string_view place, bool good, std::string_view what,
                    const std::string& got) {
  if (!good) fail_argument({.place = place, .what = what, .got = got});
}

void fail_io(const Complaint& complaint) { throw IoError(to_string(complaint)); }

TransportError::TransportError(Details details)
    : std::runtime_error(transport_message(details)), details_(std::move(details)) {}

std::string nearest_name(std::string_view word, std::span<const std::string_view> valid) {
  for (const auto& [habit, ours] : kHabits) {
    if (habit == word && std::ranges::find(valid, ours) != valid.end()) return std::string(ours);
  }
  const auto closer = [&](std::string_view a, std::string_view b) {
    return edit_distance(word, a) < edit_distance(word, b);
  };
  const auto best = std::min_element(valid.begin(), valid.end(), closer);
  if (best == valid.end()) return {};
  const std::size_t tolerated = std::max<std::size_t>(2, best->size() / 3);
  if (edit_distance(word, *best) <= tolerated) return std::string(*best);
  const auto begins_so = [&](std::string_view name) { return name.starts_with(word); };
  const auto longer = std::ranges::find_if(valid, begins_so);
  return word.size() >= 3 && longer != valid.end() ? std::string(*longer) : std::string();
}

void fail_unknown_name(std::string_view place, std::string_view kind, std::string_view word,
                       std::span<const std::string_view> valid) {
  std::string names;
  for (std::string_view name : valid) names += (names.empty() ? "" : ", ") + std::string(name);
  const std::string nearest = nearest_name(word, valid);
  const std::string hint = nearest.empty() ? "" : "did you mean '" + nearest + "'? ";
  const std::string what = "unknown " + std::string(kind);
  fail_argument({place, what, "'" + std::string(word) + "'", hint + "valid: " + names});
}

void assertion_failed(const char* condition, const char* file, int line) {
  throw std::logic_error(std::string("[bug] ") + condition + " does not hold at " + file + ":" +
                         std::to_string(line) + "; please report it");
}

}  // namespace gossamer
