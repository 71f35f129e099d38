#include "gossamer/data/byte_corpus.h"

#include <algorithm>
#include <cmath>

#include "gossamer/base/errors.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

constexpr const char* kByteCorpus = "byte corpus";

bool has_suffix(const std::string& name, const std::vector<std::string>& suffixes) {
  if (suffixes.empty()) return true;
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return name.ends_with(suffix); });
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            const CorpusOptions& options) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(
      folder, std::filesystem::directory_options::skip_permission_denied, error);
  for (; !error && entry != std::filesystem::end(entry); entry.increment(error)) {
    std::error_code ignored;
    const bool wanted = has_suffix(entry->path().filename().string(), options.suffixes);
    if (wanted && entry->is_regular_file(ignored)) files.push_back(entry->path());
  }
  if (error) {
    fail_io({.place = kByteCorpus,
             .what = "folder " + quoted(folder) + " cannot be read",
             .got = error.message(),
             .remedy = "check the permissions"});
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string wanted_files(const CorpusOptions& options) {
  std::string text = "file";
  for (std::size_t i = 0; i < options.suffixes.size(); ++i) {
    text += (i == 0 ? " ending in " : " or ") + ("'" + options.suffixes[i] + "'");
  }
  return text;
}

}  // namespace

std::vector<std::uint8_t> read_corpus(const std::filesystem::path& path,
                                      const CorpusOptions& options) {
  std::vector<std::uint8_t> corpus;
  if (std::error_code error; !std::filesystem::is_directory(path, error)) {
    corpus = read_bytes(path, options.max_bytes);
  } else {
    for (const auto& file : files_in(path, options)) {
      const auto left = options.max_bytes - static_cast<std::int64_t>(corpus.size());
      if (left <= 0) break;
      const std::vector<std::uint8_t> bytes = read_bytes(file, left);
      corpus.insert(corpus.end(), bytes.begin(), bytes.end());
    }
  }
  if (corpus.empty()) {
    fail_io({.place = kByteCorpus,
             .what = quoted(path) + " has no bytes to train on",
             .got = "no " + wanted_files(options) + " with content",
             .remedy = "give a text file, or a folder and the suffixes of its files"});
  }
  return corpus;
}

CorpusSplit split_corpus(std::int64_t corpus_bytes, const CorpusSplitOptions& options) {
  const double fraction = options.validation_fraction;
  if (!(fraction > 0 && fraction <= 0.5) || options.block_bytes <= 0) {
    fail_argument({.place = kByteCorpus,
                   .what = "a validation split needs a fraction in (0, 0.5] and positive blocks",
                   .got = std::to_string(fraction) + " and " + std::to_string(options.block_bytes) +
                          " bytes"});
  }
  const std::int64_t every = std::lround(1 / fraction);
  const std::int64_t block = std::clamp<std::int64_t>(corpus_bytes / every, 1, options.block_bytes);
  CorpusSplit split;
  for (std::int64_t begin = 0, b = 0; begin < corpus_bytes; begin += block, ++b) {
    const CorpusSpan span{.begin = begin, .end = std::min(begin + block, corpus_bytes)};
    if (b % every == every - 1) {
      split.validation.push_back(span);
    } else if (!split.training.empty() && split.training.back().end == begin) {
      split.training.back().end = span.end;
    } else {
      split.training.push_back(span);
    }
  }
  return split;
}

}  // namespace gossamer
