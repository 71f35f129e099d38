"""The benches of faults: what they draw is theirs to repeat, and they see what they look for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import conftest  # noqa: F401  the package's place, before the package
import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ROOT / "bench" / "faults"
sys.path[:0] = [str(FAULTS), str(ROOT / "tools")]

import cluster as clusters  # noqa: E402
import drawn  # noqa: E402
import exchanger  # noqa: E402
import explained  # noqa: E402
import going_on  # noqa: E402
import moments  # noqa: E402
import soak  # noqa: E402
import training  # noqa: E402


@pytest.fixture
def rights() -> None:
    if reason := clusters.missing_rights():
        pytest.skip(reason)


def run(script: str, *words: str) -> subprocess.CompletedProcess:
    package = {"GOSSAMER_PYTHON_PATH": moments.PACKAGE}
    return subprocess.run(
        [sys.executable, str(FAULTS / script), *words],
        env={**os.environ, **package},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_moments_are_the_same_for_the_same_seed_and_cover_everything() -> None:
    found = [drawn.draw(7, number, 2.0) for number in range(70)]
    assert found == [drawn.draw(7, number, 2.0) for number in range(70)]
    assert {moment.fault for moment in found} == set(drawn.FAULTS)
    assert {moment.phase for moment in found} == {"", *training.PHASES}
    assert {moment.layout for moment in found} == set(drawn.LAYOUTS)


def test_moments_in_which_the_others_go_on_cover_everything() -> None:
    found = [drawn.draw(7, number, 2.0, lost="go_on") for number in range(70)]
    assert {moment.fault for moment in found} == set(going_on.FAULTS)
    assert {(moment.how["topology"], moment.how["late"]) for moment in found} == {
        (how["topology"], how["late"]) for how in going_on.HOWS
    }
    assert all(moment.agent for moment in found if moment.fault == "kill store")


def test_of_two_parts_the_larger_one_goes_on_or_that_with_the_lowest_rank() -> None:
    two_and_two = [0, 0, 1, 1]
    assert going_on.away("kill", 2, two_and_two) == [2]
    assert going_on.away("kill store", 0, two_and_two) == []
    assert going_on.away("unplug", 3, two_and_two) == [2, 3]
    assert going_on.away("unplug", 1, two_and_two) == [2, 3]
    assert going_on.away("unplug", 0, [0, 1, 2, 3]) == [0]
    assert going_on.away("unplug", 1, [0, 0, 0, 1]) == [3]


def test_an_error_names_a_rank_or_does_not() -> None:
    assert explained.names_a_rank({"message": "receive with worker 3 failed", "peer": None})
    assert explained.names_a_rank({"message": "", "peer": 0})
    assert not explained.names_a_rank({"message": "Connection reset by peer", "peer": None})


def test_a_landing_that_is_written_to_shows() -> None:
    landing = exchanger.Landing.of(100)
    assert landing.is_untouched()
    landing.inner[0] = 1
    assert landing.margins_are_whole()
    assert not landing.is_untouched()
    landing.whole[-1] = 1
    assert not landing.margins_are_whole()


def test_only_failures_that_a_fault_explains_are_excused() -> None:
    hosts = [0, 0, 1, 1]
    unplugged, killed = soak.Fault("unplug", 0, 5.0, 6.0), soak.Fault("kill", 2, 5.0, 6.0)
    assert unplugged.concerns(1, 2, hosts)
    assert not unplugged.concerns(0, 1, hosts)
    assert killed.concerns(2, 3, hosts)
    assert not killed.concerns(0, 3, hosts)


def test_more_descriptors_at_the_end_are_a_problem() -> None:
    early = {"anonymous_kib": 1000, "shared_kib": 0, "descriptors": 20, "threads": 2}
    ends = {rank: {"early": early, "late": dict(early)} for rank in soak.RANKS}
    assert soak.Soak.growth(ends) == []
    ends[1]["late"]["descriptors"] = 21
    assert soak.Soak.growth(ends) == ["1 holds more: descriptors 20 early, 21 late"]


@pytest.mark.parametrize(("way", "kinds"), [("memory", "offers,broken"), ("streams", "ready")])
def test_a_hostile_peer_for_a_moment(way: str, kinds: str, tmp_path: Path) -> None:
    if not (Path(moments.PACKAGE).parent / "bin" / "hostile_peer").exists():
        pytest.skip("no benches are built")
    out = tmp_path / "out.json"
    words = ["--seconds=1", "--pairs=1", f"--ways={way}", f"--kinds={kinds}", f"--json={out}"]
    done = run("hostile.py", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(out.read_text())["rows"]
    assert [row["kind"] for row in rows] == kinds.split(",")
    assert all(row["meetings"] >= 1 for row in rows)


@pytest.mark.usefixtures("rights")
def test_a_worker_killed_at_a_random_moment(tmp_path: Path) -> None:
    number = next(n for n in range(99) if drawn.draw(3, n, 1.0).fault == "kill")
    words = ["--seed=3", f"--only={number}", "--usual=1", "--loaders=2", "--secret"]
    done = run("moments.py", *words, f"--out={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "moments.json").read_text())
    assert (result["moments"], result["hangs"], result["wrong"]) == (1, 0, 0)


@pytest.mark.usefixtures("rights")
def test_the_others_finish_without_one_that_is_killed(tmp_path: Path) -> None:
    number = next(
        n
        for n in range(99)
        if (moment := drawn.draw(4, n, 1.0, lost="go_on")).fault == "kill"
        and moment.phase == "average"
    )
    words = ["--seed=4", f"--only={number}", "--usual=1", "--lost=go_on"]
    done = run("moments.py", *words, f"--out={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json.loads((tmp_path / "moments.json").read_text())["runs"]
    ends = [end for rank, end in result["ends"].items() if int(rank) != result["rank"]]
    assert all("finished" in end for end in ends)


@pytest.mark.usefixtures("rights")
def test_a_short_soak(tmp_path: Path) -> None:
    words = ["--seconds=4", "--first=1", "--seed=5", "--children=2", "--secret"]
    done = run("soak.py", *words, f"--out={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "soak.json").read_text())
    assert sum(result["faults"].values()) >= 1
    assert result["rounds"] > soak.LAST_ROUNDS


@pytest.mark.usefixtures("rights")
def test_two_hosts_that_are_parted_for_a_moment(tmp_path: Path) -> None:
    out = tmp_path / "parted.json"
    words = ["--hosts=1,1", "--seconds=1", "--ways=one", "--after=20", f"--out={out}"]
    done = run("parted.py", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(out.read_text())
    assert found["started again"] == [0, 0]
    assert found["steps until together"] is not None
