"""Translation end to end, against an encoder-decoder written with torch.nn."""

import gzip
import json
import math
import random
from pathlib import Path

import pytest
import sacrebleu
import sentencepiece
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from train_runs import checkpoint_bytes, gossamer, train

WORDS = "one two red blue dog house runs old tree small".split()
WIDTH, HEADS, LAYERS, CONTEXT = 32, 2, 1, 24
BEGIN, END = 2, 3
FLAGS = (
    f"--vocabulary 60 --context {CONTEXT} --global-batch 768 --width {WIDTH} --layers {LAYERS} "
    f"--heads {HEADS} --optimizer adam --beta2 0.98 --weight-decay 0 --lr 1e-2 --warmup 20 "
    "--validation-samples 1000 --hosts 2 --per-host 2"
).split()


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """A language whose translation says the words in the other order."""
    dice = random.Random(seed)
    sentences = [[dice.choice(WORDS) for _ in range(dice.randint(2, 5))] for _ in range(count)]
    return [(" ".join(words), " ".join(reversed(words))) for words in sentences]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for name, count, seed in (("train", 3000, 1), ("val", 100, 2)):
        both = list(zip(*pairs(count, seed), strict=True))
        for side, lines in zip(("in", "out"), both, strict=True):
            (folder / f"{name}.{side}.gz").write_bytes(
                gzip.compress("".join(f"{line}\n" for line in lines).encode())
            )
    return folder


def data(text: Path) -> list[str]:
    files = {"data": "train.in", "target": "train.out"}
    files |= {"validation": "val.in", "validation-target": "val.out"}
    flags = [word for flag, name in files.items() for word in (f"--{flag}", f"{text / name}.gz")]
    return ["--task", "translation", *flags, *FLAGS]


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.fixture(scope="module")
def run(text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    out = tmp_path_factory.mktemp("translation") / "run"
    done = train(*data(text), "--dropout", "0", "--steps", "500", "--out", str(out), "--json")
    return out, json.loads(done.stdout)


class Reference:
    """The same model from its file, with operations of torch alone."""

    def __init__(self, folder: Path) -> None:
        self.weights = load_file(folder / "model.safetensors")
        self.pieces = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / "vocabulary.model")
        )

    def norm(self, name: str, x: Tensor) -> Tensor:
        return F.layer_norm(
            x, [WIDTH], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        )

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.kernel"] + self.weights[f"{name}.bias"]

    def attention(self, name: str, asking: Tensor, asked: Tensor, *, causal: bool) -> Tensor:
        """One sentence: [length, width]."""
        q, k, v = (
            self.linear(f"{name}.{part}", x).view(-1, HEADS, WIDTH // HEADS).transpose(0, 1)
            for part, x in (("query", asking), ("key", asked), ("value", asked))
        )
        scores = q @ k.transpose(1, 2) / math.sqrt(WIDTH // HEADS)
        if causal:
            later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        mixed = (scores.softmax(2) @ v).transpose(0, 1).reshape(-1, WIDTH)
        return self.linear(f"{name}.out", mixed)

    def embed(self, pieces: list[int]) -> Tensor:
        position = torch.arange(len(pieces)).double()[:, None]
        rate = 1e4 ** (-torch.arange(0, WIDTH, 2).double() / WIDTH)
        waves = torch.stack([(position * rate).sin(), (position * rate).cos()], 2)
        x = self.weights["embedding"][pieces] * math.sqrt(WIDTH)
        return x + waves.view(len(pieces), WIDTH).float()

    def layer(self, name: str, x: Tensor, memory: Tensor | None) -> Tensor:
        normed = self.norm(f"{name}.self_norm", x)
        causal = memory is not None
        x = x + self.attention(f"{name}.self_attention", normed, normed, causal=causal)
        if memory is not None:
            normed = self.norm(f"{name}.source_norm", x)
            x = x + self.attention(f"{name}.source_attention", normed, memory, causal=False)
        hidden = self.linear(f"{name}.hidden_in", self.norm(f"{name}.hidden_norm", x)).relu()
        return x + self.linear(f"{name}.hidden_out", hidden)

    def log_p(self, source: str, target: list[int]) -> Tensor:
        """Row i: of the piece after target[:i]."""
        memory = self.embed([*self.pieces.encode(source), END])
        for k in range(LAYERS):
            memory = self.layer(f"encoder{k}", memory, None)
        memory = self.norm("encoder_norm", memory)
        x = self.embed([BEGIN, *target])
        for k in range(LAYERS):
            x = self.layer(f"decoder{k}", x, memory)
        return (self.norm("decoder_norm", x) @ self.weights["embedding"].T).log_softmax(1)

    def greedy(self, source: str) -> str:
        said: list[int] = []
        while len(said) < CONTEXT - 1:
            piece = int(self.log_p(source, said)[-1].argmax())
            if piece == END:
                break
            said.append(piece)
        return str(self.pieces.decode(said))


def test_the_validation_loss_is_that_of_the_saved_model(
    run: tuple[Path, dict[str, float]], text: Path
) -> None:
    out, summary = run
    reference = Reference(out)
    total, count = 0.0, 0
    sides = zip(lines_of(text / "val.in.gz"), lines_of(text / "val.out.gz"), strict=True)
    for source, target in sides:
        pieces = reference.pieces.encode(target)
        log_p = reference.log_p(source, pieces)
        total -= sum(float(log_p[i, piece]) for i, piece in enumerate([*pieces, END]))
        count += len(pieces) + 1
    assert total / count == pytest.approx(summary["val_loss"], rel=1e-4)
    assert summary["perplexity"] == pytest.approx(math.exp(summary["val_loss"]))


def test_greedy_translations_are_those_of_the_saved_model(
    run: tuple[Path, dict[str, float]], text: Path, tmp_path: Path
) -> None:
    out, _ = run
    hypotheses = tmp_path / "val.hyp"
    gossamer("translate", str(out), "--input", f"{text / 'val.in.gz'}", "--output", str(hypotheses))
    found = hypotheses.read_text().splitlines()
    reference = Reference(out)
    sources = lines_of(text / "val.in.gz")
    assert found[:20] == [reference.greedy(source) for source in sources[:20]]
    bleu = sacrebleu.corpus_bleu(found, [lines_of(text / "val.out.gz")]).score
    assert bleu > 50  # chance finds a word in ten
    wide = gossamer("translate", str(out), "--input", f"{text / 'val.in.gz'}", "--beam", "4")
    assert len(wide.stdout.splitlines()) == len(sources)


def test_a_resumed_run_ends_with_the_same_bits(text: Path, tmp_path: Path) -> None:
    flags = [*data(text), "--steps", "12", "--checkpoint-every", "6", "--label-smoothing", "0.1"]
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    train(*flags, "--out", str(whole))
    train(*flags, "--out", str(halves))
    for file in (halves / "checkpoints" / "step-00000012").iterdir():
        file.unlink()
    (halves / "checkpoints" / "step-00000012").rmdir()
    train("--resume", str(halves))
    assert checkpoint_bytes(halves, 12) == checkpoint_bytes(whole, 12)
    assert (halves / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_run_that_has_not_ended_cannot_translate(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(*data(text), "--steps", "1", "--out", str(out))
    (out / "model.safetensors").unlink()
    done = gossamer("translate", str(out), check=False)
    assert done.returncode == 2
    assert (
        f"has no model.safetensors; a run writes it at its end: gossamer train --resume {out}"
        in (done.stderr)
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--target", ""], "text must come in pairs of files"),
        (["--vocabulary", "5000"], "cannot learn 5000 pieces"),
        (["--global-batch", "20"], "raise global_batch"),
        (["--dropout", "1"], "dropout must be at least 0 and less than 1"),
    ],
)
def test_says_what_is_wrong(text: Path, change: list[str], words: str) -> None:
    done = train(*data(text), "--steps", "1", *change, check=False)
    assert done.returncode == 2
    assert words in done.stderr
