"""gossamer.Shares: every sample once in each epoch, whoever is lost or comes back."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from package_runs import with_package
from torch.utils.data import DataLoader

import gossamer
from gossamer import _core
from gossamer.shares import rounds
from gossamer.shares.rounds import Round, Said, Timeline, Work

PROGRAM = str(Path(__file__).with_name("sharing.py"))


def trained_in(work: Work, of: Round, ranks: dict[int, tuple[int, int]]) -> Counter[int]:
    """Places by how often they are trained on; ranks with the steps of their share."""
    places = rounds.dealt(work, of)
    return Counter(
        place
        for rank, (first, end) in ranks.items()
        for step in range(first, end)
        for place in rounds.share(work, of, places, rank, step)
    )


@pytest.mark.parametrize("total", [1, 7, 64, 1000, 1024])
@pytest.mark.parametrize(("workers", "per_step", "every"), [(1, 4, 3), (4, 8, 5), (8, 1, 100)])
def test_without_losses_each_is_dealt_once_in_the_least_steps(
    total: int, workers: int, per_step: int, every: int
) -> None:
    work = Work(total, workers, per_step)
    timeline, of = rounds.begin(work, 10, every)
    counts: Counter[int] = Counter()
    while rounds.dealt(work, of):
        counts += trained_in(work, of, {r: (of.begin, of.end) for r in range(workers)})
        of = rounds.following(work, timeline, of, {r: Said(of.begin) for r in range(workers)})
    assert counts == Counter(range(total))
    assert of.begin - 10 == -(-total // (workers * per_step))
    assert of.left == ()


def test_the_metrics_have_the_samples_of_each_step(tmp_path: Path) -> None:
    data = [torch.ones(2)] * 11
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with gossamer.Gossip(model, optimizer, metrics=tmp_path) as gossip:
        shares = gossamer.Shares(gossip, len(data), batch_size=2, batches_per_step=2, every=2)
        sizes = []
        while shares.deal():
            batches = list(DataLoader(data, batch_sampler=shares))  # ahead of the steps
            for first, second in zip(batches[::2], batches[1::2], strict=True):
                sizes.append(len(first) + len(second))
                (model(first).sum() + model(second).sum()).backward()
                optimizer.step()
    lines = map(json.loads, (tmp_path / "metrics.rank0.jsonl").read_text().splitlines())
    found = [line["samples"] for line in lines if "step_ms" in line]
    assert found == sizes
    assert sum(found) == 11


def test_a_round_that_is_not_full_has_about_equal_steps() -> None:
    work = Work(50, 4, 8)
    _, of = rounds.begin(work, 0, 10)
    places = rounds.dealt(work, of)
    sizes = [len(rounds.share(work, of, places, r, s)) for s in range(2) for r in range(4)]
    assert sum(sizes) == 50
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("seed", range(60))
def test_what_a_lost_worker_has_not_done_is_dealt_again(seed: int) -> None:
    """In each round workers may die, and come back, with their share or without knowing it. What
    those that are there have done, or one that died alone some steps before its death, is never
    dealt again; all else is."""
    dice = random.Random(seed)
    work = Work(dice.randrange(1, 3000), dice.randrange(2, 7), dice.randrange(1, 9))
    timeline, of = rounds.begin(work, 0, dice.randrange(4, 40))
    counted: Counter[int] = Counter()
    lost_now: set[int] = set()
    came: dict[int, int] = {}
    played = in_doubt = 0
    while rounds.dealt(work, of):
        played += 1
        assert played < 3000
        there = {r: (of.begin, of.end) for r in range(work.workers) if r not in lost_now}
        said: dict[int, Said] = {r: Said(of.begin, {}, came.get(r)) for r in there}
        dead: dict[int, int] = {}  # with the step of their death
        while len(said) > 1 and dice.random() < 0.4:
            rank = dice.choice(sorted(said))
            dead[rank] = dice.randrange(of.begin, of.end)
            del said[rank]
            lost_now.add(rank)
        is_doubtful = len(lost_now) > 1 or any(
            of.begin - each.came < _core.STEPS_UNTIL_EDGES
            for each in said.values()
            if each.came is not None
        )
        done = {rank: (of.begin, max(of.begin, at - 1)) for rank, at in dead.items()}
        for rank, at in dead.items():
            noticed = at + 1 + (dice.randrange(30) if is_doubtful else 0)  # its neighbours died
            if noticed <= of.end:
                witness = dice.choice(sorted(said))
                said[witness] = said[witness]._replace(lost={**said[witness].lost, rank: noticed})
                other = dice.choice(sorted(said))  # no neighbour
                late = min(noticed, said[other].lost.get(rank, noticed)) + dice.randrange(30)
                if other != witness:
                    lost = {**said[other].lost, rank: late}
                    said[other] = said[other]._replace(lost=lost)
            elif not is_doubtful:  # in the call at the end of the round
                done[rank] = (of.begin, of.end - 1)
        own: dict[int, tuple[int, int]] = {}
        for rank in sorted(lost_now):  # who comes back does so after its death was noticed
            noticed = max([of.begin] + [each.lost.get(rank, 0) for each in said.values()])
            if dice.random() < 0.5 and (rank in of.absent or noticed > of.begin):
                first = max(dice.randrange(of.begin, of.end), noticed)
                lost_now.discard(rank)
                came[rank] = first
                knows = first < of.end and dice.random() < 0.5
                said[rank] = Said(first if knows else None, {}, first)
                own[rank] = (first, of.end) if knows else (of.end, of.end)
        whole = {rank: steps for rank, steps in there.items() if rank not in dead}
        certain = trained_in(work, of, whole) + trained_in(work, of, own)
        counted += certain + trained_in(work, of, done)
        in_doubt += trained_in(work, of, done).total() if is_doubtful else 0
        of = rounds.following(work, timeline, of, said)
    assert set(counted) == set(range(work.total))
    assert counted.total() - work.total <= in_doubt
    assert of.left == ()


def test_rounds_end_where_everybody_expects_it() -> None:
    timeline = Timeline(origin=3, every=10, planned_end=30)
    assert [timeline.next_end(s) for s in (3, 12, 13, 22, 23, 29)] == [13, 13, 23, 23, 30, 30]
    assert [timeline.next_end(s) for s in (30, 31, 37, 38)] == [38, 38, 38, 46]


def alone(**options: Any) -> tuple[gossamer.Gossip, torch.optim.Optimizer, gossamer.Shares]:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gossip = gossamer.Gossip(model, optimizer)
    return gossip, optimizer, gossamer.Shares(gossip, 23, 4, **options)


def batches(sampler: gossamer.Shares, optimizer: torch.optim.Optimizer, each: int = 1) -> list[Any]:
    found = []
    loader = DataLoader(torch.arange(23), batch_sampler=sampler)
    while sampler.deal():
        assert len(loader) > 0
        for k, batch in enumerate(loader):
            found.append((sampler.epoch, batch.tolist()))
            if k % each == each - 1:
                optimizer.step()
    return found


def test_a_loader_has_every_sample_of_every_epoch() -> None:
    gossip, optimizer, sampler = alone(epochs=2, every=3)
    found = [sample for _, batch in batches(sampler, optimizer) for sample in batch]
    assert sorted(found[:23]) == sorted(found[23:]) == list(range(23))
    assert found[:23] != found[23:]
    assert found[:23] != list(range(23))
    assert gossip.steps_done == -(-46 // 4)
    gossip.close()


def test_several_batches_make_a_step_and_nothing_is_shuffled() -> None:
    gossip, optimizer, sampler = alone(batches_per_step=2, shuffle=False)
    found = batches(sampler, optimizer, each=2)
    assert [sample for _, batch in found for sample in batch] == list(range(23))
    assert gossip.steps_done == 3
    gossip.close()


def test_a_step_with_fewer_samples_than_batches_has_others_beside_them() -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gossip = gossamer.Gossip(model, optimizer)
    sampler = gossamer.Shares(gossip, 3, 1, batches_per_step=4)
    optimizer.step()  # one before the first deal counts for nothing
    assert sampler.deal()
    found = list(sampler)
    assert [len(batch) for batch in found] == [1, 1, 1, 1]
    assert {batch[0] for batch in found} == {0, 1, 2}
    gossip.close()


def test_a_state_goes_on_in_the_middle_of_a_round(tmp_path: Path) -> None:
    gossip, optimizer, sampler = alone(every=4)
    assert sampler.deal()
    seen = []
    for batch in sampler:
        seen += batch
        optimizer.step()
        if gossip.steps_done == 2:
            break
    gossip.save(tmp_path)
    state = json.loads(json.dumps(sampler.state_dict()))
    gossip.close()
    gossip, optimizer, sampler = alone(every=4)
    with pytest.raises(ValueError, match="after 2 steps, got 23 after 0"):
        sampler.load_state_dict(state)
    gossip.load(tmp_path)
    sampler.load_state_dict(state)
    seen += [sample for _, batch in batches(sampler, optimizer) for sample in batch]
    assert sorted(seen) == list(range(23))
    gossip.close()


def test_a_state_of_other_workers_is_dealt_anew() -> None:
    was, now = Work(1000, 4, 8), Work(1000, 3, 16)
    _, of = rounds.begin(was, 0, 10)
    done = trained_in(was, of, {r: (0, 6) for r in range(4)})
    timeline, of = rounds.begin(now, 6, 10, rounds.rest_of(was, of, 6))
    while rounds.dealt(now, of):
        done += trained_in(now, of, {r: (of.begin, of.end) for r in range(3)})
        of = rounds.following(now, timeline, of, {r: Said(of.begin) for r in range(3)})
    assert done == Counter(range(1000))


def test_mistakes_are_named() -> None:
    gossip, optimizer, sampler = alone(every=4)
    with pytest.raises(RuntimeError, match="nothing has been dealt"):
        list(sampler)
    assert sampler.deal()
    optimizer.step()
    with pytest.raises(RuntimeError, match="got 1 steps in place of 4"):
        sampler.deal()
    with pytest.raises(ValueError, match="batch_size of Shares is 1 or more, got 0"):
        gossamer.Shares(gossip, 5, 0)
    with pytest.raises(TypeError, match="got Linear"):
        gossamer.Shares(torch.nn.Linear(1, 1), 5, 1)
    gossip.close()


def epoch_with_deaths(folder: Path, size: int, batch: int, life: int) -> tuple[Counter[int], int]:
    """How often each sample was trained on by who knew its share, and how many workers died. Each
    but the first dies once the one before has been back for `life` steps."""
    workers = 4
    launch = [sys.executable, "-m", "gossamer", "launch", "-n", str(workers), "--spares", "1"]
    done = subprocess.run(
        [*launch, "--", sys.executable, PROGRAM, str(folder), str(size), str(batch)],
        env=with_package({"DIE": "2,0,1,3", "LIFE": str(life), "EVERY": "40"}),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [
        json.loads(line)
        for path in folder.glob("trained-*.jsonl")
        for line in path.read_text().splitlines()
    ]
    too_late = done.stderr.count("it is not started again, others have finished")
    assert sum("end" in line for line in lines) + too_late == workers, done.stderr
    counts = Counter(sample for line in lines if line.get("knows") for sample in line["samples"])
    return counts, done.stderr.count("ended by SIGKILL")


def test_an_epoch_in_which_workers_die_and_come_back(tmp_path: Path) -> None:
    """Every sample once, but for two batches for each death, for those of workers that come back to
    a round that they do not know, and for steps of the last short round that have no sample left.
    """
    size, batch, mixes_again = 10000, 4, 40 + _core.STEPS_UNTIL_EDGES + 4
    counts, deaths = epoch_with_deaths(tmp_path, size, batch, mixes_again)
    assert deaths > 0
    assert len(counts) == size
    filled = rounds._SHORT_ROUND * 4
    assert counts.total() - size <= 2 * batch * deaths + filled


def test_no_sample_is_left_out_where_several_die_in_a_round(tmp_path: Path) -> None:
    counts, deaths = epoch_with_deaths(tmp_path, 6000, 4, 10)
    assert deaths > 2
    assert len(counts) == 6000
