"""strategy="gossamer" of workers that are lost, come back into fit, or are told to stop."""

import importlib.util
import json
import signal
from pathlib import Path
from typing import Any

import example_runs
import pytest
from torch.utils.data import DistributedSampler

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("lightning") is None, reason="lightning is not installed"
)

WORKERS, EPOCHS, BATCH, SAMPLES = 3, 6, 4, 480  # as in lightning_back.py
BATCHES = SAMPLES // WORKERS // BATCH  # of an epoch


def run(folder: Path, words: dict[str, Any], restarts: int) -> tuple[int, str, list[Any]]:
    """How it ended, what it said, and what each worker found."""
    folder.mkdir(exist_ok=True)
    done = example_runs.launch("lightning_back.py", folder, json.dumps(words), restarts=restarts)
    paths = [folder / f"found-{rank}.json" for rank in range(WORKERS)]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    return done.returncode, done.stderr, found


def samples_of(rank: int, epoch: int) -> list[list[int]]:
    """As Lightning deals them."""
    sampler = DistributedSampler(range(SAMPLES), WORKERS, rank, shuffle=True, seed=0)
    sampler.set_epoch(epoch)
    samples = list(sampler)
    return [samples[k : k + BATCH] for k in range(0, len(samples), BATCH)]


def check_all_are_there(words: dict[str, Any], said: str, found: list[Any]) -> None:
    rank, died_in = words["dies"]
    batches = words.get("batches", 1)
    steps = EPOCHS * BATCHES // batches
    back, others = found[rank], [each for each in found if each is not found[rank]]
    assert f"rank {rank} is back from step" in said
    assert [each["steps"] for each in found] == [steps] * WORKERS
    assert [each["epoch"] for each in found] == [EPOCHS] * WORKERS
    assert [each["mean"] for each in found] == [back["mean"]] * WORKERS
    assert len({each["best"] for each in found}) == 1
    assert back["test"][0] == pytest.approx(back["test"][1], rel=1e-4)
    assert [each["test"] for each in found] == [back["test"]] * WORKERS
    assert back["ranks"] == others[0]["ranks"][-len(back["ranks"]) :]
    assert back["ranks"][-1] == list(range(WORKERS))

    first = min(map(int, back["rates"]))
    assert died_in < first < steps
    assert sorted(map(int, back["rates"])) == list(range(first, steps))
    assert back["rates"].items() <= others[0]["rates"].items()
    places = [tuple(map(int, place.split())) for place in back["samples"]]
    assert places == [divmod(k, BATCHES) for k in range(first * batches, EPOCHS * BATCHES)]
    for place, samples in back["samples"].items():
        epoch, number = map(int, place.split())
        assert samples == samples_of(rank, epoch)[number]


@pytest.mark.parametrize(
    "words",
    [{"dies": [2, 30]}, {"dies": [0, 30], "batches": 2, "interval": "epoch"}],
    ids=["rank 2", "rank 0, two batches in a step"],
)
def test_a_killed_worker_comes_back_into_fit(tmp_path: Path, words: dict[str, Any]) -> None:
    code, said, found = run(tmp_path, words, 3)
    assert code == 0, said
    check_all_are_there(words, said, found)


def test_one_comes_back_into_a_fit_that_went_on_from_a_checkpoint(tmp_path: Path) -> None:
    code, said, _ = run(tmp_path / "first", {"epochs": 1}, 0)
    assert code == 0, said
    words = {"dies": [1, BATCHES + 20], "resume": str(tmp_path / "first" / "kept" / "last.ckpt")}
    code, said, found = run(tmp_path / "second", words, 3)
    assert code == 0, said
    check_all_are_there(words, said, found)


def test_all_stop_after_the_same_step_where_one_is_told(tmp_path: Path) -> None:
    code, said, found = run(tmp_path, {"told": [1, 50]}, 0)
    assert code == 128 + signal.SIGTERM, said
    steps = {each["steps"] for each in found}
    assert len(found) == WORKERS
    assert len(steps) == 1
    assert 50 < steps.pop() < EPOCHS * BATCHES
    assert [each["broadcasts"] for each in found] == [0] * WORKERS, "a batch waited for rank 0"
