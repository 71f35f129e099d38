"""`gossamer train` on images: formats, models, augmentation, the recipe for digits."""

import json
import shutil
import signal
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from train_runs import GOSSAMER, ROOT, checkpoint_bytes, train, wait_for

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


def png(width: int, pixels: bytes) -> bytes:
    """A grey image, row by row."""
    rows = b"".join(b"\0" + pixels[k : k + width] for k in range(0, len(pixels), width))
    png = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", width, len(pixels) // width, 8, 0, 0, 0, 0)
    for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        png += struct.pack(">I", len(content)) + kind + content + checksum
    return png


def write_class_folders(folder: Path) -> None:
    """The images of write_idx(), in the order of write_sorted_idx()."""
    images = pixels(80, 28 * 28)
    for k in range(80):
        of_class = folder / f"{k // 8}"
        of_class.mkdir(exist_ok=True)
        (of_class / f"{k:02}.png").write_bytes(png(28, images[k * 28 * 28 : (k + 1) * 28 * 28]))


def write_sorted_idx(folder: Path) -> None:
    write_idx(folder)
    labels = bytes(k // 8 for k in range(80))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx([80], labels))


@pytest.mark.parametrize(
    ("write", "classes"),
    [(write_class_folders, 10), (write_idx, 10), (write_cifar10, 10), (write_cifar100, 100)],
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
    "--part t10k": ["no part 't10k'", "parts train"],
    "--image-size 9000": ["image_size", "8192", "got 9000"],
    "--read-ahead -1": ["read_ahead", "-1"],
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


def test_files_of_a_folder_per_class_train_bit_for_bit_as_an_idx_file(tmp_path: Path) -> None:
    saved = {}
    for name, write in (("files", write_class_folders), ("idx", write_sorted_idx)):
        (tmp_path / name).mkdir()
        write(tmp_path / name)
        out = tmp_path / f"{name}-run"
        flags = "--steps 5 --flip --shift 2 --checkpoint-every 5 --out".split()
        done = train(*SMALL, "--data", str(tmp_path / name), *flags, str(out))
        losses = [
            [json.loads(line).get("loss") for line in file.read_text().splitlines()]
            for file in sorted(out.glob("metrics.rank*.jsonl"))
        ]
        assert len(losses) == 4
        saved[name] = (losses, json.loads(done.stdout)["val_loss"], checkpoint_bytes(out, 5))
    assert saved["files"] == saved["idx"]


def write_photographs(folder: Path, sizes: list[int]) -> None:
    """Colour images of several sizes, one of them a JPEG file, in parts."""
    seed = (ROOT / "tests" / "fuzz" / "decode_image" / "jpeg-colour.seed").read_bytes()
    for part, count in (("train", 40), ("val", 4)):
        for k in range(count):
            of_class = folder / part / ("cat", "dog")[k % 2]
            of_class.mkdir(parents=True, exist_ok=True)
            width = sizes[k % len(sizes)]
            (of_class / f"{k}.png").write_bytes(png(width, pixels(width, 10 + k)))
        (folder / part / "cat" / "photo.jpg").write_bytes(seed[1:])


def test_images_of_several_sizes_are_cropped_whoever_decodes_them(tmp_path: Path) -> None:
    write_photographs(tmp_path, [9, 16, 31])
    flags = [*SMALL, "--data", str(tmp_path), "--steps", "4"]
    refused = train(*flags, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    for part in ("must have one size", "cat/", "--image-size"):
        assert part in refused.stderr
    flags += ["--image-size", "12"]
    runs = [
        json.loads(train(*flags, *more.split()).stdout)
        for more in ("", "--crop --flip", "--crop --flip --read-ahead 0", "--read-ahead 3")
    ]
    losses = [(run["train_loss"], run["val_loss"]) for run in runs]
    assert losses[0] == losses[3] != losses[1] == losses[2]
    small = train(*flags, "--part", "val", "--validation-fraction", "0.5")
    assert f"{tmp_path}/val/cat and 1 more: 3 images of 2 classes" in small.stderr


def test_hundreds_of_classes_train(tmp_path: Path) -> None:
    for k in range(300):
        (tmp_path / f"{k:03}").mkdir()
        for image in range(2):
            file = tmp_path / f"{k:03}" / f"{image}.png"
            file.write_bytes(png(8, pixels(8, 8 + image)[: 8 * 8]))
    done = train(*SMALL, "--data", str(tmp_path), "--model", "mlp", "--steps", "3")
    assert "of 300 classes" in done.stderr
    assert json.loads(done.stdout)["train_loss"] > 1  # ln 300 is 5.7


def test_a_killed_run_on_files_goes_on_bit_for_bit(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_photographs(data, [14, 20])
    flags = [*SMALL, "--data", str(data), *"--image-size 12 --crop --flip --read-ahead 2".split()]
    flags += "--steps 40 --checkpoint-every 4 --keep 20 --out".split()
    train(*flags, str(tmp_path / "whole"))
    cut = tmp_path / "cut"
    with subprocess.Popen(
        [str(GOSSAMER), "train", *flags, str(cut)], stderr=subprocess.DEVNULL, text=True
    ) as run:
        wait_for(cut / "checkpoints" / "latest", run)
        run.send_signal(signal.SIGKILL)
    for last in (cut / "checkpoints").glob("step-00000040"):  # where it was faster than the signal
        shutil.rmtree(last)
    data.rename(tmp_path / "moved")
    train("--resume", str(cut), "--data", str(tmp_path / "moved"))
    assert checkpoint_bytes(cut, 40) == checkpoint_bytes(tmp_path / "whole", 40)
    (tmp_path / "moved" / "train" / "cat" / "photo.jpg").unlink()
    refused = train("--resume", str(cut), "--steps", "44", check=False)
    assert refused.returncode == 2
    assert "content of the data" in refused.stderr


def test_a_checkpoint_from_before_a_key_goes_on_with_its_default(tmp_path: Path) -> None:
    write_idx(tmp_path)
    out = tmp_path / "run"
    flags = [*SMALL, "--data", str(tmp_path), "--steps", "2", "--checkpoint-every", "2", "--out"]
    train(*flags, str(out))
    file = out / "checkpoints" / "step-00000002" / "manifest.json"
    lines = file.read_text().splitlines(keepends=True)
    newer = ("image_size", "crop", "part")
    older = [line for line in lines if not any(f'"{key}"' in line for key in newer)]
    assert len(older) == len(lines) - 3
    checksum = zlib.crc32("".join(older[:-2]).encode())
    file.write_text("".join(older[:-2]) + f'  "checksum": "{checksum:08x}"\n}}\n')
    for more, code in (["--crop"], 2), ([], 0):
        assert train("--resume", str(out), "--steps", "4", *more, check=False).returncode == code


def test_the_recipe_for_digits_runs(tmp_path: Path) -> None:
    write_idx(tmp_path)
    for more in ([], ["--pattern", "allreduce", "--optimizer", "adamw"]):
        done = train(str(RECIPE), "--data", str(tmp_path), "--steps", "2", "--json", *more)
        assert json.loads(done.stdout)["workers"] == 8
