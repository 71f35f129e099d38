"""`gossamer lab figure`: the list, the page of all figures, and what some are there to show."""

import json
from pathlib import Path
from typing import Any

import pytest
from package_runs import started

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

Rows = list[list[str]]


def summaries() -> dict[str, str]:
    """By the name of each figure."""
    done = started("lab figure --list")
    assert (done.returncode, done.stderr) == (0, "")
    pairs = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    return {name: summary for name, summary in pairs}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def found(pictures: Path) -> dict[str, Any]:
    """All figures but the one of images, with one trial each."""
    done = started(f"lab figure all --trials 1 --json --out {pictures}")
    assert done.returncode == 0, done.stderr
    assert "digits: skipped, it needs --images and --labels\n" in done.stderr
    return {figure["figure"]: figure for figure in json.loads(done.stdout)}


def column(rows: Rows, number: int) -> dict[str, float]:
    """By the first cell."""
    return {row[0]: float(row[number]) for row in rows}


def test_all_figures_stand_on_one_page(found: dict[str, Any], pictures: Path) -> None:
    named = summaries()
    assert set(named) - set(found) == {"digits"}
    page = (pictures / "figures.html").read_text()
    for name, figure in found.items():
        assert figure["title"] == named[name]
        assert named[name] in page
        assert (pictures / f"{name}.svg").read_text().startswith("<svg")
        assert all(len(row) == len(figure["header"]) for row in figure["rows"]), name


def test_accumulated_moments_need_smaller_steps_where_samples_are_few(
    found: dict[str, Any],
) -> None:
    """Adam divides by the noise of its samples, AccumAdam by less of it: its steps are longer."""
    rates = {row[0]: float(row[2]) for row in found["accum_adam"]["rows"] if row[1] == "1"}
    assert len(rates) == 4
    assert rates["ring, Adam"] > rates["ring, AccumAdam, s = 4"] > rates["ring, AccumAdam, s = 16"]
    drawn = found["accum_adam"]["charts"][0]["series"]
    errors = {row[0]: float(row[3]) for row in found["accum_adam"]["rows"] if row[1] == "1"}
    assert errors == pytest.approx({each["name"]: min(each["y"]) for each in drawn}, rel=0.01)


def test_one_peer_is_nearly_as_good_as_all_at_any_size(found: dict[str, Any]) -> None:
    rows = found["one_peer_exponential"]["rows"]
    ratios = column(rows, 3)
    disagreements = column(rows, 4)
    for size in (32, 48):
        one_peer, static = f"one-peer exponential, n = {size}", f"static exponential, n = {size}"
        assert 0.75 < ratios[one_peer] / ratios[static] < 1.25
        assert disagreements[one_peer] > disagreements[static] > 0


def test_corrections_are_nearer_to_parallel_sgd_than_d_sgd(found: dict[str, Any]) -> None:
    ratios = column(found["corrections_logistic"]["rows"], 3)
    plain = ratios.pop("D-SGD")
    assert ratios.pop("parallel SGD") == 1
    assert len(ratios) == 3
    assert all(1 < ratio < plain for ratio in ratios.values())


def idx(shape: list[int], values: bytes) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    return bytes([0, 0, 8, len(shape)]) + sizes + values


def write_images(folder: Path) -> str:
    """Of 8 by 8 pixels, with a bright corner for each of four classes; the flags that name them."""
    count, side = 320, 8
    pixels = bytearray()
    for image in range(count):
        for row in range(side):
            for at in range(side):
                noise = (image * image * 31 + row * 57 + at * 113) % 120
                corner = row // 4 * 2 + at // 4
                pixels.append(noise + 120 * (corner == image % 4))
    (folder / "images").write_bytes(idx([count, side, side], bytes(pixels)))
    (folder / "labels").write_bytes(idx([count], bytes(image % 4 for image in range(count))))
    return f"--images {folder / 'images'} --labels {folder / 'labels'}"


def test_images_dealt_by_class_need_corrections(tmp_path: Path) -> None:
    flags = write_images(tmp_path)
    done = started(f"lab figure digits --trials 1 --json {flags} --out {tmp_path}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "digits.svg").exists()
    rows = json.loads(done.stdout)["rows"]
    mixed = column([row for row in rows if row[1] == "at random"], 4)
    sorted_ = column([row for row in rows if row[1] == "by class"], 4)
    assert len(mixed) == len(sorted_) == 9
    assert mixed["parallel SGD"] == sorted_["parallel SGD"] == 1
    for plain in ("D-SGD", "D-SGD, cwa", "local SGD, H = 16"):
        assert sorted_[plain] > 10 * mixed[plain]
        for corrected in ("Exact-Diffusion", "EXTRA", "gradient tracking"):
            assert sorted_[plain] > 10 * sorted_[corrected]


def test_labels_in_the_place_of_images_are_named(tmp_path: Path) -> None:
    _, images, _, labels = write_images(tmp_path).split()
    done = started(f"lab figure digits --images {labels} --labels {images}")
    assert (done.returncode, done.stdout) == (2, "")
    for words in ("must be images of rows and columns", "got 1 and 3 dimensions", "images first"):
        assert words in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("all --out {}/file/inside", "cannot make the folder {}/file/inside, got Not a directory"),
        ("digits --images {}/file", "needs two IDX files, as MNIST has them, got no --labels"),
        ("digits --images {0}/file --labels {0}/file", "'{}/file' is not an IDX file of bytes"),
        ("a b", "makes one figure, or all, got 2 names"),
    ],
)
def test_mistakes_are_named(words: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = started("lab figure " + words.format(tmp_path))
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert said.format(tmp_path) in done.stderr
