"""topology="auto": the ranks take what `gossamer plan` recommends for their cluster."""

import json
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gossip_ranks
import pytest
from gossip_support import mlp, train
from torch.optim import SGD

import gossamer
from gossamer import Gossip, _core
from gossamer.session import planning

PROGRAM = Path(__file__).parents[2] / "build" / "bin" / "gossamer"
HOSTS = [2, 1, 2]
WORKLOAD = 'parameters = 1_000_000\ncompute = "{}"\ndeviation = "1ms"\n'


def write_plan(folder: Path, hosts: list[int], rates: list[str], compute: str = "50ms") -> Path:
    folder.mkdir()
    text = "".join(
        f'[[hosts]]\nworkers = {workers}\nlink_rate = "{rate}"\n'
        for workers, rate in zip(hosts, rates, strict=True)
    )
    (folder / "cluster.toml").write_text(text)
    (folder / "workload.toml").write_text(WORKLOAD.format(compute))
    return folder


def recommended(folder: Path) -> dict[str, Any]:
    """What the command says."""
    line = [str(PROGRAM), "plan", "--cluster", str(folder / "cluster.toml"), "--workload"]
    done = subprocess.run(
        [*line, str(folder / "workload.toml"), "--json"], check=True, capture_output=True, text=True
    )
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    write_plan(folder / "slow", HOSTS, ["50Mbit/s", "50Mbit/s", "10Mbit/s"])
    write_plan(folder / "fast", HOSTS, ["100Gbit/s"] * 3, compute="1s")
    write_plan(folder / "int8", HOSTS, ["200Mbit/s"] * 3)
    write_plan(folder / "others", [2, 2, 1], ["50Mbit/s"] * 3)
    return folder


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["planned", "unplanned"], HOSTS)


def rates_of(folder: Path) -> list[float]:
    ranking = gossamer.rank_methods(str(folder / "cluster.toml"), str(folder / "workload.toml"))
    return list(ranking.link_rates)


@pytest.mark.parametrize("update", ["step", "backward"])
def test_slow_links_are_gossiped_over_as_planned(
    folder: Path, ranks: list[gossip_ranks.Rank], update: str
) -> None:
    found = [each[f"slow {update}"] for each in gossip_ranks.results(ranks, "planned")]
    name = recommended(folder / "slow")["recommended"]
    method = _core.Method(name)
    assert not method.averages_gradients
    schedule = method.schedule(HOSTS, link_rates=rates_of(folder / "slow"))
    for own in found:
        assert own["plan"][0] == f"topology auto: {name}."
        assert (own["pattern"], own["update"], own["steps"]) == ("cwa", update, 3)
        assert (own["codec"], own["late"]) == (method.codec, method.late)
        assert own["matrices"] == [schedule.matrix(t) for t in range(12)]


@pytest.mark.parametrize("update", ["step", "backward"])
def test_fast_links_are_for_allreduce(
    folder: Path, ranks: list[gossip_ranks.Rank], update: str
) -> None:
    found = [each[f"fast {update}"] for each in gossip_ranks.results(ranks, "planned")]
    name = recommended(folder / "fast")["recommended"]
    assert _core.Method(name).averages_gradients
    for own in found:
        assert own["plan"][0].startswith(f"topology auto: {name}")
        assert (own["pattern"], own["update"], own["steps"]) == ("allreduce", "step", 3)


def test_rank_0_says_it_once(ranks: list[gossip_ranks.Rank]) -> None:
    for rank, found in enumerate(gossip_ranks.results(ranks, "planned")):
        for own in found.values():
            said = [each for each in own["said"] if "topology auto" in each]
            assert said == ([f"[Gossip] {' '.join(own['plan'])}"] if rank == 0 else [])
            assert len(own["plan"]) > 1


def test_the_plan_must_be_of_the_job_s_cluster(ranks: list[gossip_ranks.Rank]) -> None:
    for rank, found in enumerate(gossip_ranks.results(ranks, "unplanned")):
        others, nowhere = found["others"], found["nowhere"]
        assert others["type"] == "ValueError"
        assert (
            "the plan is for 3 hosts with 2, 2, 1 workers, got a job on 3 hosts with 2, 1, 2 "
            "workers" in others["message"]
        )
        assert nowhere["type"] == "IoError"
        assert "cluster.toml" in nowhere["message"]
        for failure in (others, nowhere):
            assert ("rank 0 could not plan" in failure["message"]) == (rank > 0)


def test_one_worker_has_a_plan_too(tmp_path: Path) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    plan = write_plan(tmp_path / "plan", [1], ["1Gbit/s"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Gossip(model, optimizer, topology="auto", plan=str(plan)) as gossip:
            train(model, optimizer, range(2))
            assert gossip.plan[0].startswith("topology auto: ")
            assert gossip.stats()["steps"] == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topology": "auto"}, 'topology="auto" needs a plan, got none; give plan='),
        ({"plan": "here"}, 'plan= is for topology="auto", got topology \'alternating_exp'),
        ({"topology": "auto", "plan": "x", "codec": "bf16"}, "decides codec as well, got codec="),
        ({"topology": "auto", "plan": "x", "pattern": "atc"}, "decides pattern as well"),
        ({"topology": "auto", "plan": "x", "late": "skip"}, "decides late as well"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], words: str) -> None:
    model = mlp()
    with pytest.raises(ValueError) as raised:
        Gossip(model, SGD(model.parameters(), lr=0.1), **options)
    assert words in str(raised.value)


def ranking(recommended: str, methods: list[str]) -> SimpleNamespace:
    return SimpleNamespace(
        recommended=recommended,
        methods=[SimpleNamespace(method=each) for each in methods],
        reasons=["Because."],
        workers_per_host=[2, 1, 2],
        link_rates=[4.0, 4.0, 1.0],
    )


SETTINGS = {"topology": "auto", "pattern": "cwa", "codec": "fp32", "late": "wait"}


def decided(monkeypatch: pytest.MonkeyPatch, said: SimpleNamespace) -> dict[str, Any]:
    """The settings that a ranking ends in."""
    from gossamer.session.settings import Settings
    from gossamer.workers.world import World

    core = SimpleNamespace(Method=_core.Method, rank_methods=lambda *_: said)
    monkeypatch.setattr(planning, "_core", core)
    monkeypatch.setattr(planning, "exchange", lambda world, what, card, problem, timeout: [card])
    others = dict.fromkeys(Settings.__dataclass_fields__)
    settings = Settings(**{**others, **SETTINGS, "plan": "here", "staleness": 1, "update": "step"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings, sentences = planning.decide(World(0, 5, None, (2, 1, 2), 0), settings)
    return {**vars(settings), "sentences": sentences}


def test_the_recommended_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ranking("allreduce:int8", ["allreduce:int8", "allreduce:bf16", "aer", "ddp"])
    found = decided(monkeypatch, said)
    assert (found["pattern"], found["codec"], found["plan"]) == ("allreduce", "int8", None)
    assert found["sentences"] == ("topology auto: allreduce:int8.", "Because.")


def test_all_parts_of_a_method_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = decided(monkeypatch, ranking("ring:int8:local=4:average=32", []))
    assert (found["pattern"], found["codec"], found["late"]) == ("cwa", "int8", "wait")
    # Mixes in every fourth step only, and every 32nd averages all: 1/5 everywhere.
    schedule = found["topology"]
    identity = [[float(i == j) for j in range(5)] for i in range(5)]
    mixes = [t for t in range(32) if schedule.matrix(t) != identity]
    assert 8 <= len(mixes) <= 9
    means = [t for t in range(32) if {x for row in schedule.matrix(t) for x in row} == {0.2}]
    assert len(means) == 1
    found = decided(monkeypatch, ranking("one_peer_ring:skip=3", []))
    assert (found["late"], found["staleness"]) == ("skip", 3)
    found = decided(monkeypatch, ranking("ring:backward", []))
    assert found["update"] == "backward"


def test_fitted_follows_the_links_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    found = decided(monkeypatch, ranking("fitted:bf16", []))
    expected = gossamer.make_schedule("fitted", [2, 1, 2], link_rates=[4, 4, 1])
    equal = gossamer.make_schedule("fitted", [2, 1, 2])
    own = [found["topology"].matrix(t) for t in range(24)]
    assert own == [expected.matrix(t) for t in range(24)]
    assert own != [equal.matrix(t) for t in range(24)]
