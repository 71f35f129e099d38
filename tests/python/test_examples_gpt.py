"""examples/gpt: the twins, their shards, what they learn and resume, their page's commands."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from example_runs import ROOT
from example_workers import GPT, commands_of, finish, kill_when_there, losses, start, typed

sys.path.append(str(GPT))

import data
import model as models

MOST_LINES = 6
STEPS, EVERY = 24, 8
COMMON = ["--steps", STEPS, "--validate-every", EVERY, "--warm-up", 4]


def test_twins_differ_in_at_most_six_lines() -> None:
    command = ["git", "diff", "--no-index", "--numstat", "train_ddp.py", "train_gossip.py"]
    told = subprocess.run(command, cwd=GPT, capture_output=True, text=True, check=False).stdout
    added, removed = told.split()[:2]
    assert 1 <= int(added) <= MOST_LINES
    assert 1 <= int(removed) <= MOST_LINES


def test_a_shard_gives_its_tokens(tmp_path: Path) -> None:
    path = tmp_path / "train_0.bin"
    data.write_shard(path, [1, 2, 50_256, 65_535])
    content = path.read_bytes()
    assert content[:12] == b"".join(n.to_bytes(4, "little") for n in (20240520, 1, 4))
    assert content[1024:] == b"\1\0\2\0\x50\xc4\xff\xff"
    assert data.read_shard(path).tolist() == [1, 2, 50_256, 65_535]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: b"", "is no token shard: it must begin with 20240520, got 0"),
        (
            lambda c: b"GIF8" + c[4:],
            "is no token shard: it must begin with 20240520, got 944130375",
        ),
        (lambda c: c[:4] + b"\2" + c[5:], "a version that nobody here reads: it must be 1, got 2"),
        (lambda c: c[:-1], "is truncated or too long: 3 tokens take 1030 bytes, got 1029"),
        (lambda c: c + b"\0", "is truncated or too long: 3 tokens take 1030 bytes, got 1031"),
    ],
    ids=["empty", "another file", "another version", "truncated", "too long"],
)
def test_what_is_no_shard_is_refused(change, said: str, tmp_path: Path) -> None:
    path = tmp_path / "val_0.bin"
    data.write_shard(path, [1, 2, 3])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        data.Shards(tmp_path, "val", 2, 256)
    assert str(caught.value).startswith(f"[data] {path} ")
    assert str(caught.value).endswith("write it again with examples/gpt/data.py, or copy it again")


def test_windows_lie_in_one_shard_each_and_follow_from_their_key(tmp_path: Path) -> None:
    data.write_shard(tmp_path / "train_0.bin", range(10))
    data.write_shard(tmp_path / "train_1.bin", range(100, 105))
    shards = data.Shards(tmp_path, "train", 3, 256)
    tokens, following = shards.random(200, "key")
    assert torch.equal(following, tokens + 1)
    assert set(tokens[:, 0].tolist()) == {*range(7), 100, 101}
    assert torch.equal(shards.random(200, "key")[0], tokens)
    assert not torch.equal(shards.random(200, "other")[0], tokens)
    shares = [shards.first(4, part, 2)[0][:, 0].tolist() for part in range(2)]
    assert shares == [[0, 6], [3]], "one after the other, dealt to two"


def test_a_folder_without_enough_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must have shards \*val\*\.bin .*, got no such file"):
        data.Shards(tmp_path, "val", 3, 256)
    data.write_shard(tmp_path / "val_0.bin", range(3))
    with pytest.raises(ValueError, match=r"of more than 3 tokens, got 3 tokens; write them with"):
        data.Shards(tmp_path, "val", 3, 256)


def test_tokens_that_the_model_does_not_know_are_refused(tmp_path: Path) -> None:
    data.write_shard(tmp_path / "val_0.bin", [300] * 5)
    with pytest.raises(ValueError, match=r"must be below 256, got 300; choose another --model"):
        data.Shards(tmp_path, "val", 3, 256).random(1, "key")


def test_the_bytes_of_texts_become_shards(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(bytes(range(100)))
    written = data.write_bytes([text, text], tmp_path / "out", most=80, held_back=0.1)
    assert [path.name for path in written] == [
        "train_000000.bin",
        "train_000001.bin",
        "train_000002.bin",
        "val_000000.bin",
    ]
    tokens = torch.cat([data.read_shard(path).long() for path in written])
    assert tokens.tolist() == [*range(100)] * 2
    with pytest.raises(ValueError, match="got 200 bytes and --val 0; name larger files"):
        data.write_bytes([text, text], tmp_path / "out", most=80, held_back=0)


@pytest.mark.parametrize("name", models.CONFIGS)
def test_a_model_has_the_parameters_of_its_shape(name: str) -> None:
    shape = models.CONFIGS[name]
    with torch.device("meta"):
        model = models.GPT(shape)
    width, layers = shape.width, shape.layers
    embeddings = (shape.vocabulary + shape.length) * width
    blocks = layers * (12 * width**2 + 13 * width)
    assert sum(p.numel() for p in model.parameters()) == embeddings + blocks + 2 * width
    muon, adamw = models.make_optimizers(model, 1e-3, 1e-2)
    counts = [sum(p.numel() for g in o.param_groups for p in g["params"]) for o in (muon, adamw)]
    assert counts == [layers * 12 * width**2, embeddings + layers * 13 * width + 2 * width]


def test_a_new_model_guesses_and_sees_no_token_that_follows() -> None:
    torch.manual_seed(0)
    model = models.GPT(models.CONFIGS["tiny"])
    tokens = torch.randint(256, (4, 64))
    assert model(tokens, tokens.roll(-1, 1)).item() == pytest.approx(math.log(256), rel=0.02)
    changed = tokens.clone()
    changed[:, 40:] = 0
    assert torch.equal(model(tokens)[:, :40], model(changed)[:, :40])


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the guides."""
    out = tmp_path_factory.mktemp("shards")
    data.write_bytes(sorted((ROOT / "docs").glob("*.md")), out, most=100_000, held_back=0.1)
    return out


def trained(folder: Path, shards: Path, way: str, *words: object) -> str:
    """What two workers say who train in a folder, to their end."""
    places = ["--data", shards, "--metrics", folder, "--save", folder / "saved"]
    places += ["--export", folder / "model.pt"]
    return finish(start(f"train_{way}.py", *places, *COMMON, *words))


ACCUMULATED = ("--accumulate", 2, "--schedule", "linear")


@pytest.fixture(scope="module")
def ddp(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of the twin for DDP."""
    folder = tmp_path_factory.mktemp("ddp")
    trained(folder, shards, "ddp", *ACCUMULATED)
    return folder


def test_allreduce_has_the_losses_of_ddp(shards: Path, ddp: Path, tmp_path: Path) -> None:
    said = trained(tmp_path, shards, "gossip", *ACCUMULATED, "--method", "allreduce")
    assert 'pattern "cwa"' not in said, "a hint about the default"
    for rank in range(2):
        expected = losses(ddp, rank)
        assert sorted(expected) == [*range(1, STEPS + 1)]
        assert expected[STEPS] < 0.75 * expected[1]
        assert losses(tmp_path, rank) == pytest.approx(expected, rel=1e-4)
    expected = losses(ddp, name="val_loss")
    assert sorted(expected) == [8, 16, 24]
    assert losses(tmp_path, name="val_loss") == pytest.approx(expected, rel=1e-4)
    exported = [torch.load(folder / "model.pt") for folder in (ddp, tmp_path)]
    assert exported[0].keys() == exported[1].keys()
    for name, value in exported[0].items():
        torch.testing.assert_close(exported[1][name], value, rtol=1e-3, atol=1e-4)


def goes_on(whole: Path, folder: Path, shards: Path, way: str, *words: object) -> None:
    """Kills a run after it has saved, and compares the rest of it with that of a whole one."""
    saved = folder / "saved"
    places = ["--data", shards, "--metrics", folder, "--save", saved]
    begun = start(f"train_{way}.py", *places, *COMMON, *words)
    kill_when_there(saved / ("ddp.pt" if way == "ddp" else "latest"), begun)
    assert EVERY <= max(losses(folder)) < STEPS, "it was not killed in the middle"
    said = trained(folder, shards, way, *words, "--resume", saved)
    assert f"step {STEPS}: " in said
    assert losses(folder) == losses(whole)
    assert losses(folder, name="val_loss") == losses(whole, name="val_loss")
    one, other = (torch.load(place / "model.pt") for place in (whole, folder))
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_killed_run_of_ddp_goes_on_with_equal_bits(
    shards: Path, ddp: Path, tmp_path: Path
) -> None:
    goes_on(ddp, tmp_path, shards, "ddp", *ACCUMULATED)


def test_a_killed_run_of_gossip_in_bf16_goes_on_with_equal_bits(
    shards: Path, tmp_path: Path
) -> None:
    trained(tmp_path / "whole", shards, "gossip", "--dtype", "bf16")
    found = losses(tmp_path / "whole")
    assert found[STEPS] < 0.75 * found[1]
    goes_on(tmp_path / "whole", tmp_path / "killed", shards, "gossip", "--dtype", "bf16")


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    for name in ("examples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    blocks = commands_of(GPT / "README.md", __file__)
    assert len(blocks) == 5
    for block in blocks:
        done = typed(block, tmp_path)
        assert done.returncode == 0, f"{block}{done.stdout}{done.stderr}"
    assert "AllReduce" in (tmp_path / "report.html").read_text()
