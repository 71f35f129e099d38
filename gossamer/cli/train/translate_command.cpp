#include <torch/nn/module.h>

#include <iostream>
#include <optional>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/train/commands.h"
#include "gossamer/cli/train_help.h"
#include "gossamer/recipe/file.h"
#include "gossamer/torch/data/pair_batch.h"
#include "gossamer/torch/modules/decode.h"
#include "gossamer/train/model.h"
#include "gossamer/train/model_file.h"

namespace gossamer {
namespace {

std::vector<std::string> lines_of(const TranslateLine& o) {
  if (!o.input.empty()) return read_lines(o.input);
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  return lines;
}

/// The model as it was trained, and how it reads and writes.
struct Translator {
  Model model;
  Vocabulary vocabulary;
  std::int64_t context = 0;
};

Translator open_translator(const std::filesystem::path& run, Trust trust) {
  Recipe recipe;
  if (!is_there(run / "run.toml")) {
    fail_argument({.place = "translate",
                   .what = "needs the folder of a run",
                   .got = run.string() + ", which has no run.toml",
                   .remedy = "name a folder that `gossamer train --out FOLDER` has written"});
  }
  read_recipe((run / "run.toml").string(), recipe);
  if (recipe.data.task != TaskKind::translation) {
    fail_argument({.place = "translate",
                   .what = run.string() + " must be a run of the task translation",
                   .got = std::string(name_of(recipe.data.task))});
  }
  if (!is_there(run / kModelFile)) {
    fail_io({.place = "translate",
             .what = run.string() + " has no " + std::string(kModelFile),
             .remedy = "a run writes it at its end: gossamer train --resume " + run.string()});
  }
  const Vocabulary vocabulary = Vocabulary::load(run / kVocabularyFile, trust);
  const InputShape input{.classes = vocabulary.pieces(), .context = recipe.data.context};
  Translator translator{make_bare_model(recipe.model, {InputKind::pairs, input}, recipe.run.seed),
                        vocabulary, recipe.data.context};
  load_model(run / kModelFile, *translator.model.module);
  translator.model.module->eval();
  return translator;
}

std::vector<std::string> translate(const Translator& translator,
                                   const std::vector<std::string>& lines, const TranslateLine& o) {
  const DecodeOptions options{
      .beam = o.beam, .length_power = o.length_power, .longest = translator.context - 1};
  std::vector<PiecePair> pairs;
  for (const std::string& line : lines) pairs.push_back({translator.vocabulary.encode(line), {}});
  cut_long(pairs, translator.context);
  std::vector<std::string> translations;
  for (std::int64_t begin = 0; begin < std::ssize(pairs); begin += o.batch) {
    std::vector<std::int64_t> chosen;
    for (auto i = begin; i < std::min(begin + o.batch, std::ssize(pairs)); ++i) chosen.push_back(i);
    for (const auto& pieces :
         decode(translator.model, pair_batch(pairs, chosen).sources, options)) {
      translations.push_back(translator.vocabulary.decode(pieces));
    }
  }
  return translations;
}

}  // namespace

int translate_command(int argc, char** argv) {
  TranslateLine o;
  CLI::App app;
  add_translate_flags(app, o);
  parse_arguments(app, "translate", {argv + 1, argv + argc});
  const Translator translator =
      open_translator(o.run, o.trusts_vocabulary ? Trust::all : Trust::sealed);
  std::string text;
  for (const std::string& line : translate(translator, lines_of(o), o)) text += line + "\n";
  if (o.output.empty()) {
    std::cout << text << std::flush;
  } else {
    write_text_file("translate", "the translations", o.output, text);
  }
  return 0;
}

}  // namespace gossamer
