"""The doctor about the clocks of several hosts, and about encryption."""

from pathlib import Path

import pytest
from package_runs import last_json, launch, run

from gossamer import doctor
from gossamer.diagnosis import clocks, encryption, ranks
from gossamer.diagnosis.links import Skew

AHEAD_S = 5.0


def script(folder: Path) -> str:
    """The doctor, with rank 1 on a host whose clock is five seconds ahead."""
    path = folder / "skewed.py"
    path.write_text(
        "import os, sys, time\n"
        "from gossamer import doctor\n"
        "from gossamer.diagnosis import links\n"
        "if os.environ['RANK'] == '1':\n"
        "    os.environ['GROUP_RANK'] = 'late'\n"
        f"    links.now_ns = lambda: time.time_ns() + int({AHEAD_S} * 1e9)\n"
        "sys.exit(doctor.main(['--timeout-s', '90', *sys.argv[1:]]))\n"
    )
    return str(path)


def test_workers_of_one_machine_have_one_clock() -> None:
    said = last_json(launch(3, ["-m", "gossamer", "doctor", "--timeout-s", "90", "--json"]).stdout)
    assert len(said["clocks"]) == 3
    for clock in said["clocks"]:
        assert abs(clock["ahead_s"]) <= clock["uncertain_s"]
    assert not any("clock" in warning for warning in said["warnings"])


def test_a_clock_that_is_ahead_is_found(tmp_path: Path) -> None:
    said = last_json(launch(3, [script(tmp_path), "--json"]).stdout)
    _, ahead, same = said["clocks"]
    assert abs(ahead["ahead_s"] - AHEAD_S) <= ahead["uncertain_s"]
    assert abs(same["ahead_s"]) <= same["uncertain_s"]


def test_people_read_of_a_clock_that_is_ahead(tmp_path: Path) -> None:
    done = launch(2, [script(tmp_path)])
    assert done.returncode == 0, done.stderr
    row = done.stdout.splitlines()[-1]
    assert "s ahead of host 0, give or take" in row
    (warning,) = [line for line in done.stderr.splitlines() if "the clock of host" in line]
    assert row.split(maxsplit=1)[1] in warning
    assert "chrony" in warning


def test_offsets_add_up_along_the_best_known_way() -> None:
    sure, vague = Skew(-2.0, 0.25), Skew(70.0, 64.0)
    found = clocks.against_rank_0(4, [(0, 1, Skew(0.5, 0.125)), (1, 2, sure), (0, 2, vague)])
    assert found == [Skew(0.0, 0.0), Skew(0.5, 0.125), Skew(-1.5, 0.375), None]
    assert clocks.against_rank_0(3, [(1, 2, Skew(1.0, 0.5)), (0, 2, Skew(3.0, 1.0))])[1] == Skew(
        2.0, 1.5
    )


def test_a_host_has_the_clock_of_its_best_known_worker() -> None:
    found = clocks.by_host(
        ["a", "a", "b", "b", "c"], [Skew(0, 0), Skew(0, 1), None, Skew(3, 1), None]
    )
    assert found == {"b": Skew(3, 1), "c": None}
    assert clocks.words(None, "a") == "not measured"


@pytest.mark.parametrize(
    ("skew", "words"),
    [
        (Skew(0.0045, 0.0005), "4.50 ms ahead of host a, give or take 0.50 ms"),
        (Skew(-2.0, 0.0001), "2.000 s behind host a, give or take 0.10 ms"),
        (Skew(0.0005, 0.0), None),
        (Skew(0.0045, 0.004), None),  # may be half a millisecond
    ],
)
def test_a_warning_needs_a_millisecond_beyond_doubt(skew: Skew, words: str | None) -> None:
    found = clocks.warnings(["a", "b"], [Skew(0, 0), skew])
    assert bool(found) == (words is not None)
    assert all(f"the clock of host b is {words}; " in warning for warning in found)


def test_links_that_were_not_measured_leave_clocks_unknown() -> None:
    team = ranks.Team(["a", "b"], [None, None], [ranks.Link(0, 1, None, "no answer")])
    assert team.clocks() == [Skew(0.0, 0.0), None]


def test_alone_it_tries_tls() -> None:
    (facts,) = last_json(run(["-m", "gossamer", "doctor", "--timeout-s", "90", "--json"]).stdout)[
        "workers"
    ]
    assert facts["encryption"]["TLS"].endswith("with tls=True or --tls; tried here, works")
    assert facts["encryption"]["without TLS"].endswith("not encrypted")


def test_tls_that_does_not_work_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_PORTS", "1-0")
    with pytest.raises(ValueError, match="GOSSAMER_PORTS"):
        encryption.try_here(1.0)
    mine = doctor._look_around()
    doctor._talk_to_myself(mine, ranks.Clock(20))
    assert mine.facts["encryption"]["TLS"].endswith("tried here, fails")
    (warning,) = [text for text in mine.warnings if text.startswith("TLS was tried")]
    assert "GOSSAMER_PORTS" in warning
