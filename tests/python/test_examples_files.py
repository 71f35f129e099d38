"""What the examples promise about their files: short differences, commands, IDX files."""

import gzip
import subprocess
from pathlib import Path

import pytest
from example_runs import EXAMPLES, ROOT, example_module

MOST_LINES = 5
PAIRS = sorted(path.name.removesuffix("_ddp.py") for path in EXAMPLES.glob("*_ddp.py"))

idx_data = example_module("idx_data")


def changed(name: str, *, option: str) -> str:
    command = ["git", "diff", "--no-index", option, f"{name}_ddp.py", f"{name}_gossip.py"]
    return subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", PAIRS)
def test_twins_differ_in_at_most_five_lines(name: str) -> None:
    added, removed = changed(name, option="--numstat").split()[:2]
    assert 1 <= int(added) <= MOST_LINES
    assert 1 <= int(removed) <= MOST_LINES


@pytest.mark.parametrize("name", PAIRS)
def test_the_header_names_the_commands(name: str) -> None:
    for way in ("ddp", "gossip"):
        header = (EXAMPLES / f"{name}_{way}.py").read_text().split('"""')[1]
        assert f"    torchrun --nproc-per-node 2 examples/{name}_{way}.py" in header or (
            f"    python examples/{name}_{way}.py" in header
        )


@pytest.mark.parametrize("document", ["README.md", "docs/from-ddp.md"])
def test_the_guides_show_the_difference_as_it_is(document: str) -> None:
    guide = (ROOT / document).read_text()
    block = guide.split("```diff\n", 1)[1].split("```", 1)[0]
    shown = [line for line in block.splitlines() if line[:1] in ("+", "-")]
    lines = changed("images", option="--unified=0").splitlines()
    real = [line for line in lines if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
    assert sorted(shown) == sorted(real)


def idx_file(folder: Path, content: bytes, *, packed: bool) -> Path:
    path = folder / ("images.gz" if packed else "images")
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_an_idx_file_gives_its_array(packed: bool, tmp_path: Path) -> None:
    header = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3])
    read = idx_data.read_idx(idx_file(tmp_path, header + bytes(range(12)), packed=packed))
    assert read.tolist() == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes([0, 0, 13, 1, 0, 0, 0, 1, 5]),
        bytes([0, 0, 8, 1, 0, 0]),
        bytes([0, 0, 8, 1, 0, 0, 0, 9, 5]),
    ],
    ids=["empty", "floats", "cut in the header", "cut in the data"],
)
def test_what_is_no_idx_file_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="images"):
        idx_data.read_idx(idx_file(tmp_path, content, packed=False))


def test_made_up_images_are_the_same_everywhere_and_of_ten_classes() -> None:
    (train, test), (again, _) = idx_data.load(None), idx_data.load(None)
    assert (train.tensors[0] == again.tensors[0]).all()
    assert (
        train.tensors[1].unique().tolist() == test.tensors[1].unique().tolist() == list(range(10))
    )
    assert not any(
        (train.tensors[0] == image).flatten(1).all(1).any() for image in test.tensors[0][:20]
    )
