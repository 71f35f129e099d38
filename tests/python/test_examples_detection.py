"""examples/detection: twins, digits, losses, average precision, resuming, the page's commands."""

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import detection_reference as reference
import pytest
import torch
from example_runs import EXAMPLES, ROOT
from example_workers import commands_of, finish, kill_when_there, losses, start, typed
from PIL import Image

sys.path.append(str(EXAMPLES / "detection"))

import boxes as box_math
import coco_data
import detectors
import digits
import torchvision_models

DETECTION = EXAMPLES / "detection"
MOST_LINES = 6
STEPS, EVERY = 16, 4
COMMON = ["--size", 48, "--batch", 4, "--steps", STEPS, "--validate-every", EVERY, "--warm-up", 4]
PARTS = ("train", "val")


def write_digits(folder: Path, count: int) -> Path:
    """IDX files of images that are all unlike: frames of ten shapes with a number inside."""
    folder.mkdir()
    images = torch.zeros(count, 28, 28, dtype=torch.uint8)
    for number in range(count):
        left, right = 4 + number % 5, 20 + number % 3
        images[number, 4:24, left:right] = 255
        images[number, 8:20, left + 4 : right - 4] = 0
        bits = torch.tensor([int(bit) for bit in f"{number:08b}"])
        images[number, 9:11, 10:18] = (255 * bits).byte()
    header = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (count, 28, 28))
    (folder / "made-images-idx3-ubyte").write_bytes(header + images.numpy().tobytes())
    header = bytes([0, 0, 8, 1]) + count.to_bytes(4, "big")
    labels = bytes(number % 10 for number in range(count))
    (folder / "made-labels-idx1-ubyte").write_bytes(header + labels)
    return folder


def write_set(idx: Path, out: Path, seed: int = 1) -> Path:
    digits.write_set(idx, out, {"train": 40, "val": 12}, held_back=0.25, seed=seed)
    return out


@pytest.fixture(scope="module")
def idx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("idx") / "made", 80)


@pytest.fixture(scope="module")
def made(idx: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(idx, tmp_path_factory.mktemp("set"))


def test_twins_differ_in_at_most_six_lines() -> None:
    command = ["git", "diff", "--no-index", "--numstat", "train_ddp.py", "train_gossip.py"]
    told = subprocess.run(command, cwd=DETECTION, capture_output=True, text=True, check=False)
    added, removed = told.stdout.split()[:2]
    assert 1 <= int(added) <= MOST_LINES
    assert 1 <= int(removed) <= MOST_LINES


def test_the_same_digits_and_seed_give_the_same_set(idx: Path, made: Path, tmp_path: Path) -> None:
    again, other = write_set(idx, tmp_path / "again"), write_set(idx, tmp_path / "other", seed=2)
    files = sorted(path.relative_to(made) for path in made.rglob("*.*"))
    assert len(files) == 40 + 12 + 2
    for file in files:
        assert (again / file).read_bytes() == (made / file).read_bytes()
    assert (other / "train.json").read_text() != (made / "train.json").read_text()


def test_boxes_obey_the_rules_and_parts_share_no_digit(made: Path) -> None:
    used: list[set[int]] = []
    for part in PARTS:
        content = json.loads((made / f"{part}.json").read_text())
        assert [each["name"] for each in content["categories"]] == list("0123456789")
        assert content["annotations"][0]["id"] == 1, "COCO takes 0 for no box"
        by_image: dict[int, list[list[float]]] = {}
        for each in content["annotations"]:
            left, top, width, height = each["bbox"]
            assert 14 <= max(width, height) <= 42
            assert min(left, top, 96 - left - width, 96 - top - height) >= 0
            assert each["area"] == width * height
            assert each["category_id"] == each["digit"] % 10 + 1
            box = [left, top, left + width, top + height]
            by_image.setdefault(each["image_id"], []).append(box)
        assert len(by_image) == len(content["images"])
        for there in by_image.values():
            assert 2 <= len(there) <= 6
            for k, box in enumerate(there):
                assert all(reference.iou(box, other) <= 0.3 for other in there[:k])
        used.append({each["digit"] for each in content["annotations"]})
    assert used[0].isdisjoint(used[1])


def test_the_ink_touches_the_sides_of_a_lone_box(idx: Path) -> None:
    rule = digits.Canvas(fewest=1, most=1)
    canvas, [(digit, box)] = digits.draw(digits.read_digits(idx), rule, random.Random(3))
    bounds = canvas.point(lambda v: 255 if v > 30 else 0).getbbox()
    assert bounds
    left, top, right, bottom = bounds
    assert (left, top, right - left, bottom - top) == pytest.approx(box, abs=1)
    assert digit.label == digit.number % 10


def test_a_folder_without_digits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\[digits\] .* got no such file; name the folder"):
        digits.read_digits(tmp_path)


def test_a_set_gives_its_images_and_boxes(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    Image.new("RGB", (60, 30), (255, 0, 0)).save(tmp_path / "train" / "wide.png")
    box = {"image_id": 7, "bbox": [10, 5, 20, 10], "area": 200, "iscrowd": 0}
    empty = {"image_id": 7, "bbox": [10, 5, 0, 10], "area": 0, "iscrowd": 0}
    content = {
        "images": [{"id": 7, "file_name": "wide.png", "width": 60, "height": 30}],
        "annotations": [
            {"id": 1, "category_id": 90, **box},
            {"id": 2, "category_id": 3, **box, "iscrowd": 1},
            {"id": 3, "category_id": 3, **empty},
        ],
        "categories": [{"id": 90, "name": "b"}, {"id": 3, "name": "a"}],
    }
    (tmp_path / "train.json").write_text(json.dumps(content))
    found = coco_data.CocoSet(tmp_path, "train", 48)
    example = found[0]
    assert (len(found), example.number, example.scale) == (1, 7, 0.8)
    assert example.target.boxes[0].tolist() == pytest.approx([8, 4, 24, 12])
    assert example.target.labels.tolist() == [1], "by the order of the categories' numbers"
    assert example.image[0, :24].min() == 1 and example.image[0, 24:].max() == -1
    assert example.image[1].max() == -1
    (tmp_path / "train" / "wide.png").unlink()
    with pytest.raises(ValueError, match=r"wide.png must lie in .*; link the folder"):
        found[0]
    with pytest.raises(ValueError, match=r"must have val.json in COCO's format"):
        coco_data.CocoSet(tmp_path, "val", 48)


def test_average_precision_of_perfect_boxes_is_1(made: Path) -> None:
    part = coco_data.CocoSet(made, "val", 96)
    results, worse = [], []
    for example in part:
        boxes, labels = example.target
        right = detectors.Found(boxes, torch.ones(len(boxes)), labels)
        results += coco_data.as_results(right, example, part.categories)
        wrong = right._replace(labels=(labels + 1) % 10)
        worse += coco_data.as_results(wrong, example, part.categories)
    assert coco_data.average_precision(part.annotations, results) == pytest.approx((1, 1))
    assert coco_data.average_precision(part.annotations, worse)[1] < 0.2
    assert coco_data.average_precision(part.annotations, []) == (0, 0)


def some_boxes(count: int, numbers: torch.Generator) -> torch.Tensor:
    corner = 60 * torch.rand(count, 2, generator=numbers, dtype=torch.double)
    size = 10 + 26 * torch.rand(count, 2, generator=numbers, dtype=torch.double)
    return torch.cat([corner, corner + size], 1)


@pytest.mark.parametrize("counts", [(3, 2), (0, 4), (0, 0)])
def test_losses_are_those_of_plain_loops(counts: tuple[int, int]) -> None:
    numbers = torch.Generator().manual_seed(5)

    def normal(*shape: int) -> torch.Tensor:
        return 2 * torch.randn(shape, generator=numbers, dtype=torch.double)

    labels = [torch.randint(10, (count,), generator=numbers) for count in counts]
    found = [some_boxes(count, numbers) for count in counts]
    targets = [detectors.Target(*each) for each in zip(found, labels, strict=True)]
    plain = [(target.boxes.tolist(), target.labels.tolist()) for target in targets]
    anchors = detectors.all_anchors(96).double()
    count = len(anchors)
    scores, shifts, objectness = normal(2, count, 10), normal(2, count, 4), normal(2, count)

    expected = reference.retina_loss(scores.tolist(), shifts.tolist(), anchors.tolist(), plain)
    loss = detectors.retina_loss(scores, shifts, anchors, targets)
    assert loss.item() == pytest.approx(expected, rel=1e-9)
    expected = reference.proposal_loss(
        objectness.tolist(), shifts.tolist(), anchors.tolist(), plain
    )
    loss = detectors.proposal_loss(objectness, shifts, anchors, targets)
    assert loss.item() == pytest.approx(expected, rel=1e-9)
    proposals = [torch.cat([some_boxes(12, numbers), boxes + 1]) for boxes in found]
    total = sum(map(len, proposals))
    scores, shifts = normal(total, 11), normal(total, 10, 4)
    expected = reference.box_loss(
        scores.tolist(), shifts.tolist(), [each.tolist() for each in proposals], plain
    )
    loss = detectors.box_loss(scores, shifts, proposals, targets)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


def test_corrections_lead_back_to_the_boxes() -> None:
    numbers = torch.Generator().manual_seed(1)
    right, from_where = some_boxes(20, numbers), some_boxes(20, numbers)
    shifts = box_math.encode(right, from_where)
    torch.testing.assert_close(box_math.decode(shifts, from_where, 96), right)


def test_suppression_and_cutting_are_those_of_plain_loops() -> None:
    numbers = torch.Generator().manual_seed(2)
    boxes, scores = some_boxes(60, numbers), torch.rand(60, generator=numbers)
    for most in (0.3, 0.7):
        expected = reference.nms(boxes.tolist(), scores.tolist(), most)
        assert box_math.nms(boxes, scores, most).tolist() == expected
    labels = torch.arange(60) % 3
    kept = set(box_math.nms_by_class(boxes, scores, labels, 0.3).tolist())
    for label in range(3):
        own = (labels == label).nonzero()[:, 0]
        expected = reference.nms(boxes[own].tolist(), scores[own].tolist(), 0.3)
        assert {*own[expected].tolist()} == {k for k in kept if labels[k] == label}
    features = torch.randn(3, 12, 12, generator=numbers, dtype=torch.double)
    cut = box_math.roi_align(features, boxes[:5], 8, 4)
    for result, box in zip(cut, boxes.tolist(), strict=False):
        torch.testing.assert_close(result, reference.roi_align(features, box, 8, 4))


@pytest.mark.parametrize("name", detectors.MODELS)
def test_a_model_learns_one_image(name: str, made: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    example = coco_data.CocoSet(made, "train", 48)[0]
    model = detectors.MODELS[name](10, 48)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses_found: list[float] = []
    for _ in range(40):
        loss = model(example.image[None], [example.target])
        losses_found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None for p in model.parameters()), "DDP waits for each of them"
        optimizer.step()
    assert losses_found[-1] < 0.2 * losses_found[0]
    [found] = model.detect(example.image[None])
    best = box_math.iou(example.target.boxes, found.boxes).max(1)
    assert (best.values > 0.5).all()
    assert torch.equal(found.labels[best.indices], example.target.labels)


def trained(folder: Path, made: Path, way: str, *words: object) -> str:
    """What two workers say who train in a folder, to their end."""
    return finish(begin(folder, made, way, *words))


def begin(folder: Path, made: Path, way: str, *words: object) -> list[subprocess.Popen[str]]:
    places = ["--data", made, "--metrics", folder, "--save", folder / "saved"]
    return start(str(DETECTION / f"train_{way}.py"), *places, *COMMON, *words)


@pytest.fixture(scope="module")
def ddp(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ddp")
    trained(folder, made, "ddp")
    return folder


def test_allreduce_has_the_losses_of_ddp(made: Path, ddp: Path, tmp_path: Path) -> None:
    trained(tmp_path, made, "gossip", "--method", "allreduce")
    for rank in range(2):
        expected = losses(ddp, rank)
        assert sorted(expected) == [*range(1, STEPS + 1)]
        assert expected[STEPS] < 0.9 * expected[1]
        assert losses(tmp_path, rank) == pytest.approx(expected, rel=1e-5)
    for name in ("val_loss", "ap", "ap50"):
        expected = losses(ddp, name=name)
        assert sorted(expected) == [*range(EVERY, STEPS + 1, EVERY)]
        assert losses(tmp_path, name=name) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", ["", "qg_dmsgd@one_peer_exponential"])
def test_a_killed_run_goes_on_with_equal_bits(
    method: str, made: Path, ddp: Path, tmp_path: Path
) -> None:
    whole, killed = ddp, tmp_path / "killed"
    way, words = ("gossip", ["--method", method]) if method else ("ddp", [])
    if method:
        whole = tmp_path / "whole"
        trained(whole, made, way, *words)
    begun = begin(killed, made, way, *words)
    kill_when_there(killed / "saved" / ("latest" if method else "ddp.pt"), begun)
    assert EVERY <= max(losses(killed)) < STEPS, "it was not killed in the middle"
    trained(killed, made, way, *words, "--resume", killed / "saved")
    for name in ("loss", "val_loss"):
        assert losses(killed, name=name) == losses(whole, name=name)


@pytest.mark.parametrize("name", torchvision_models.NAMES)
def test_models_of_torchvision_train(name: str, made: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("torchvision") is None:
        with pytest.raises(ValueError, match="needs torchvision, got none; install"):
            torchvision_models.make(name, 10, 48)
        return
    runner = str(Path(__file__).with_name("torchvision_operators.py"))
    found = []
    for way, method in (("ddp", []), ("gossip", ["--method", "allreduce"])):
        script, folder = DETECTION / f"train_{way}.py", tmp_path / way
        places = ["--data", made, "--metrics", folder]
        small = ["--model", name, "--size", 48, "--batch", 1, "--steps", 2, "--lr", 0.001]
        finish(start(runner, script, *places, *small, *method))
        found.append(losses(folder))
    assert found[1] == pytest.approx(found[0], rel=1e-5)


TINY = {
    "--train 4000 --val 1000": "--train 32 --val 8",
    "--steps 1200": "--steps 4",
    "--nproc-per-node 8": "--nproc-per-node 2",
}


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write_digits(tmp_path / "mnist", 60)
    page = DETECTION / "README.md"
    blocks = commands_of(page, __file__)
    assert len(blocks) == 3
    for block in blocks:
        for real, tiny in TINY.items():
            block = block.replace(real, tiny)
        done = typed(block, tmp_path)
        assert done.returncode == 0, f"{block}{done.stdout}{done.stderr}"
    assert all(real in page.read_text() for real in TINY)
    assert "AllReduce" in (tmp_path / "report.html").read_text()
