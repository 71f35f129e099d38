"""`gossamer train` on text: pieces, masked tokens, dropout, perplexity, the recipes, own W."""

import json
import math
import shutil
from pathlib import Path

import pytest
from train_runs import ROOT, checkpoint_bytes, gossamer, small_text, train

RECIPES = [ROOT / "examples" / "recipes" / f"{name}.toml" for name in ("gpt_bytes", "gpt_pieces")]
RECIPES.append(ROOT / "examples" / "recipes" / "bert.toml")


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return [*small_text(tmp_path), "--hosts", "2", "--per-host", "2"]


def write_digits(folder: Path) -> None:
    """Sixteen images of one pixel, as IDX files."""
    size = (16).to_bytes(4, "big")
    one = (1).to_bytes(4, "big")
    (folder / "train-images-idx3-ubyte").write_bytes(
        bytes([0, 0, 8, 3]) + size + one + one + bytes(range(16))
    )
    (folder / "train-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + size + bytes(16))


def test_perplexity_is_that_of_the_validation_loss(text: list[str], tmp_path: Path) -> None:
    summary = json.loads(train(*text, "--steps", "3", "--json").stdout)
    assert summary["perplexity"] == pytest.approx(math.exp(summary["val_loss"]))
    assert f"{summary['perplexity']:.2f}" in train(*text, "--steps", "3").stdout
    write_digits(tmp_path)
    images = ["--task", "images", "--model", "softmax_regression", "--data", str(tmp_path)]
    assert "perplexity" not in json.loads(train(*images, "--steps", "2", "--json").stdout)


def test_translation_has_a_perplexity_too(tmp_path: Path) -> None:
    for name, words in (("source", "one two three four"), ("target", "eno owt eerht ruof")):
        lines = [" ".join(words.split()[: 1 + k % 4]) + "\n" for k in range(200)]
        (tmp_path / name).write_text("".join(lines))
    done = train(
        *("--task", "translation", "--data", str(tmp_path / "source")),
        *("--target", str(tmp_path / "target"), "--vocabulary", "30", "--width", "16"),
        *"--hosts 2 --per-host 1 --steps 2 --global-batch 64 --json".split(),
    )
    summary = json.loads(done.stdout)
    assert summary["perplexity"] == pytest.approx(math.exp(summary["val_loss"]))


def test_pieces_are_learned_and_left_in_the_run_folder(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = train(*text, "--vocabulary", "60", "--steps", "3", "--json", "--out", str(out))
    assert "a vocabulary of 60" in done.stderr
    found = json.loads(done.stdout)
    given = ["--vocabulary-file", str(out / "vocabulary.model"), "--steps", "3", "--json"]
    again = json.loads(train(*text, *given).stdout)
    assert again["val_loss"] == found["val_loss"]
    (out / "vocabulary.model.seal").unlink()  # as a file that came by, or of an earlier release
    refused = train(*text, *given, check=False)
    if refused.returncode:  # by an old SentencePiece
        assert refused.returncode == 2
        assert "could run code in this version of SentencePiece" in refused.stderr
        assert "or say with --trust-vocabulary" in refused.stderr
    trusted = json.loads(train(*text, *given, "--trust-vocabulary").stdout)
    assert trusted["val_loss"] == found["val_loss"]
    as_bytes = json.loads(train(*text, "--steps", "3", "--json").stdout)
    assert as_bytes["parameters"] - found["parameters"] == (256 - 60) * 16


def test_masks_need_one_token_more(text: list[str]) -> None:
    masked = train(*text, "--objective", "masked", "--steps", "3", "--json")
    plain = train(*text, "--steps", "3", "--json")
    parameters = [json.loads(done.stdout)["parameters"] for done in (masked, plain)]
    assert parameters[0] - parameters[1] == 16


def test_text_that_follows_a_rule_is_filled_in(tmp_path: Path) -> None:
    """Each masked letter of an alphabet follows from those on its sides."""
    file = tmp_path / "alphabet.txt"
    file.write_text("abcdefghijklmnopqrstuvwxyz" * 400)
    flags = (
        "--objective masked --width 32 --layers 1 --heads 2 --context 8 --global-batch 64 "
        "--hosts 2 --per-host 1 --steps 300 --lr 1e-2 --dropout 0 --validation-samples 64 --json"
    )
    summary = json.loads(train("--data", str(file), *flags.split()).stdout)
    assert summary["val_accuracy"] > 0.4  # chance: 1 in 26


@pytest.mark.parametrize(
    "flags", ["--objective masked --vocabulary 60", "--dropout 0.2 --vocabulary 60"]
)
def test_resume_goes_on_bit_for_bit(flags: str, text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    saved = "--steps 4 --checkpoint-every 2 --keep 3 --json --out".split()
    whole = json.loads(train(*text, *flags.split(), *saved, str(out)).stdout)
    expected = checkpoint_bytes(out, 4)
    shutil.rmtree(out / "checkpoints" / "step-00000004")
    resumed = json.loads(train("--resume", str(out), "--json").stdout)
    assert checkpoint_bytes(out, 4) == expected
    assert resumed["val_loss"] == whole["val_loss"]


def test_dropout_is_off_for_the_transformer_unless_asked_for(text: list[str]) -> None:
    losses = [
        json.loads(train(*text, *more.split(), "--steps", "3", "--json").stdout)["train_loss"]
        for more in ("", "--dropout -1", "--dropout 0", "--dropout 0.1")
    ]
    assert losses[0] == losses[1] == losses[2] != losses[3]


BAD = {
    "--objective mask": ["unknown objective, got 'mask'", "next, masked"],
    "--objective masked --mask-share 0": ["mask_share must be", "0.0"],
    "--objective masked --mask-share 1.5": ["mask_share must be", "1.5"],
    "--objective masked --model transformer": ["reads tokens", "masked tokens", "choose bert"],
    "--model bert": ["reads masked tokens", "choose transformer"],
    "--model mlp": ["reads images", "choose transformer"],
    "--vocabulary 100000": ["cannot learn 100000 pieces"],
    "--vocabulary-file /nowhere": ["/nowhere"],
    "--dropout 1": ["dropout must be", "-1 for the model's usual", "1.0"],
    "--dropout -0.5": ["dropout must be", "-0.5"],
}


@pytest.mark.parametrize("flags", BAD)
def test_bad_input_gives_one_clear_message(flags: str, text: list[str]) -> None:
    done = train(*text, "--steps", "2", *flags.split(), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("["), message
    for part in BAD[flags]:
        assert part in message


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes_run(recipe: Path, tmp_path: Path) -> None:
    lines = (f"line {k}: {k * k % 977} and {k * 31 % 1009} steps.\n" for k in range(9000))
    (tmp_path / "text.txt").write_text("".join(lines))
    more = "--steps 2 --validation-samples 16 --json".split()
    summary = json.loads(train(str(recipe), "--data", str(tmp_path), *more).stdout)
    assert summary["workers"] == 8
    assert 0 < summary["val_loss"] < 9


def test_a_recipe_names_a_file_of_matrices(text: list[str], tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    weights.write_text(gossamer("topology", "ring", "--hosts", "4", "--json").stdout)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'[algorithm]\npattern = "atc"\ntopology = "{weights}"\n')
    own = json.loads(train(str(recipe), *text, "--steps", "6", "--json").stdout)
    ring = train(*text, "--pattern", "atc", "--topology", "ring", "--steps", "6", "--json")
    assert own["topology"] == str(weights)
    assert own["val_loss"] == json.loads(ring.stdout)["val_loss"]
    weights.write_text('{"rounds": [[[1]]]}')
    refused = train(str(recipe), *text, "--steps", "6", check=False)
    assert refused.returncode == 2
    assert "weights.json is for 1 worker, got 4" in refused.stderr
