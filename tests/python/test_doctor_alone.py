"""The doctor where workers do not answer, hosts do not fit and torch lacks a part."""

import json
from typing import Any

import pytest
import torch.distributed as dist

from gossamer import doctor
from gossamer.diagnosis import ranks
from gossamer.workers.world import Seat, place_of

MOMENT_S = 0.1


def clock() -> ranks.Clock:
    return ranks.Clock(MOMENT_S)


def store_of(**told: object) -> dist.HashStore:
    store = dist.HashStore()
    for key, value in told.items():
        store.set(key.replace("_", "/"), json.dumps(value))
    return store


def test_hosts_that_come_in_turns_are_a_problem_and_every_link_is_looked_at() -> None:
    here = place_of(Seat(0, 3, None))
    elsewhere = ("another machine", "other", "1", -1, 0)
    mine = ranks.Findings()
    store = store_of(host_1=elsewhere, host_2=here)
    assert ranks._hosts(mine, store, 0, 3, clock()) == ["0", "1", "2"]
    (problem,) = mine.problems
    assert "host by host" in problem
    fit = ranks.Findings()
    assert len(set(ranks._hosts(fit, store_of(host_1=here, host_2=here), 0, 3, clock()))) == 1
    assert fit.problems == []


def test_links_wait_for_all_to_be_connected() -> None:
    told = {"stage": "measuring links", "is_connected": True}
    mine = ranks.Findings()
    store = store_of(findings_0=told)
    found = ranks._share_time(mine, store, 2, 1, clock())
    assert found == [ranks.Findings(**told), None]
    assert json.loads(store.get("time"))[1] == 0, "none of the links"
    store = store_of(findings_0=told, findings_1=told)
    assert ranks._share_time(mine, store, 2, 1, clock()) == [ranks.Findings(**told)] * 2
    assert json.loads(store.get("time"))[1] == 1
    assert mine.warnings == []


def test_of_too_many_links_some_are_measured() -> None:
    mine = ranks.Findings()
    store = store_of(findings_0={"is_connected": True})
    links = 1000
    ranks._share_time(mine, store, 1, links, ranks.Clock(11))
    turn_s, every = json.loads(store.get("time"))
    assert every > 1
    assert turn_s * links / every < 11
    (warning,) = mine.warnings
    assert f"of {links} links are measured, there is no time for more" in warning


def test_a_link_after_one_that_does_not_end_has_no_time() -> None:
    store = store_of()
    transport: Any = None  # is not used
    ranks._take_turn(store, 1, (0, 1), 0, transport, MOMENT_S, clock())
    assert json.loads(store.get("link/1")) == [None, ranks.NO_TIME, None]
    assert ranks._collect(store, [(0, 1)], clock()) == [ranks.Link(0, 1, None, "no answer")]


def test_workers_and_links_without_an_answer_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    mine = doctor._look_around()
    links = [ranks.Link(0, 1, None, "no answer"), ranks.Link(0, 2, None, ranks.NO_TIME)]
    team = ranks.Team(["a", "b", "c"], [mine, None, ranks.Findings(facts=mine.facts)], links)
    assert doctor._report(mine, team, as_json=False) == 2
    said = capsys.readouterr()
    for pair, error in (("0 1", "no answer"), ("0 2", ranks.NO_TIME)):
        row = next(line for line in said.out.splitlines() if line.strip().startswith(pair))
        assert row.endswith(error)
    assert "problem: rank 1 on b did not tell what it found" in said.err
    assert "problem: workers 0 and 1: no answer" in said.err
    assert f"warning: workers 0 and 2: {ranks.NO_TIME}" in said.err


def test_a_torch_without_gloo_or_any_processes_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dist, "is_gloo_available", lambda: False)
    mine = ranks.Findings()
    assert "gloo" not in doctor._backends(mine)
    assert "built without Gloo" in mine.problems[0]
    monkeypatch.setattr(dist, "is_available", lambda: False)
    assert doctor._backends(mine) == []
    assert "built without torch.distributed" in mine.problems[1]


def test_workers_with_other_versions_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    mine = doctor._look_around()
    here = mine.facts["versions"]
    others = [
        ranks.Findings(facts={"versions": {**here, "torch": "2.12.1+cpu"}}),
        ranks.Findings(facts={"versions": {**here, "gossamer": "0.2.0"}}),
    ]
    team = ranks.Team(["a", "b", "c"], [mine, *others], [])
    assert doctor._report(mine, team, as_json=False) == 2
    said = capsys.readouterr().err
    assert f"warning: workers run different torches, {here['torch']} on ranks 0, 2 and 2.1" in said
    assert f"same Gossamer, got {here['gossamer']} on ranks 0, 1 and 0.2.0 on rank 2" in said
