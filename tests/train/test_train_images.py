"""`gossamer train` on images: formats, models, augmentation, the recipe for digits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from train_runs import ROOT, checkpoint_bytes, train

RECIPE = ROOT / "examples" / "recipes" / "digits.toml"
SMALL = (
    "--task images --width 8 --global-batch 8 --hosts 2 --per-host 2 --validation-samples 16 --json"
).split()


def pixels(count: int, size: int) -> bytes:
    """Noise that is the same on every machine."""
    return bytes((k * k * 31 + k * 7) // 5 % 251 for k in range(count * size))


def idx(shape: list[int], values: bytes) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    return bytes([0, 0, 8, len(shape)]) + sizes + values


def write_idx(folder: Path) -> None:
    labels = bytes(k % 10 for k in range(80))
    (folder / "train-images-idx3-ubyte").write_bytes(idx([80, 28, 28], pixels(80, 28 * 28)))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx([80], labels))


def write_cifar10(folder: Path) -> None:
    image = pixels(1, 3072)
    for batch in (1, 2):
        records = b"".join(bytes([k % 10]) + image[k:] + image[:k] for k in range(20))
        (folder / f"data_batch_{batch}.bin").write_bytes(records)


def write_cifar100(folder: Path) -> None:
    image = pixels(1, 3072)
    records = b"".join(bytes([k % 20, 60 + k]) + image[k:] + image[:k] for k in range(40))
    (folder / "train.bin").write_bytes(records)


@pytest.mark.parametrize(
    ("write", "classes"), [(write_idx, 10), (write_cifar10, 10), (write_cifar100, 100)]
)
def test_each_format_is_read(write: Callable[[Path], None], classes: int, tmp_path: Path) -> None:
    write(tmp_path)
    done = train(*SMALL, "--data", str(tmp_path), "--steps", "3")
    assert f"of {classes} classes" in done.stderr
    assert json.loads(done.stdout)["steps"] == 3


@pytest.mark.parametrize("model", ["resnet50", "mobilenet_v2", "efficientnet_b0"])
def test_published_networks_train_and_go_on_bit_for_bit(model: str, tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    out = tmp_path / "run"
    flags = [*SMALL, "--data", str(tmp_path), "--model", model, "--shift", "4", "--flip"]
    saved = "--steps 4 --checkpoint-every 2 --keep 3 --out".split()
    whole = json.loads(train(*flags, *saved, str(out)).stdout)
    expected = checkpoint_bytes(out, 4)
    for file in (out / "checkpoints" / "step-00000004").iterdir():
        file.unlink()
    (out / "checkpoints" / "step-00000004").rmdir()
    resumed = json.loads(train("--resume", str(out), "--json").stdout)
    assert checkpoint_bytes(out, 4) == expected
    assert resumed["val_loss"] == whole["val_loss"]


def test_augmentation_is_off_unless_asked_for(tmp_path: Path) -> None:
    write_idx(tmp_path)
    flags = [*SMALL, "--data", str(tmp_path), "--steps", "3"]
    losses = [
        json.loads(train(*flags, *more.split()).stdout)["train_loss"]
        for more in ("", "--shift 0 --no-flip", "--shift 2", "--flip", "--shift 2")
    ]
    assert losses[0] == losses[1]
    assert losses[2] == losses[4]
    assert len(set(losses)) == 3


BAD = {
    "--shift 28": ["shift", "28"],
    "--shift -1": ["shift", "-1"],
    "--part": ["unknown argument"],
    "--model resnet5": ["unknown model", "did you mean 'resnet50'?"],
}


@pytest.mark.parametrize("flags", BAD)
def test_bad_input_gives_one_clear_message(flags: str, tmp_path: Path) -> None:
    write_idx(tmp_path)
    done = train(*SMALL, "--data", str(tmp_path), *flags.split(), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    for part in BAD[flags]:
        assert part in done.stderr


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").touch()
    for folder in (tmp_path, tmp_path / "absent"):
        done = train(*SMALL, "--data", str(folder), check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert folder.name in done.stderr


def test_the_recipe_for_digits_runs(tmp_path: Path) -> None:
    write_idx(tmp_path)
    for more in ([], ["--pattern", "allreduce", "--optimizer", "adamw"]):
        done = train(str(RECIPE), "--data", str(tmp_path), "--steps", "2", "--json", *more)
        assert json.loads(done.stdout)["workers"] == 8
