"""Hosts whose links are unplugged, on an emulated cluster: who goes on, who waits, who ends."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from test_cluster import emulated, needs_cluster, wait_for

WORKER = str(Path(__file__).with_name("cut_off_worker.py"))
HOSTS = 4
SILENT_S = 8  # longer than a peer may be silent


@contextmanager
def unplugged(cluster: emulated.Cluster, hosts: list[int]) -> Iterator[None]:
    for host in hosts:
        emulated.set_link(cluster, host, is_up=False)
    try:
        yield
    finally:
        for host in hosts:
            emulated.set_link(cluster, host, is_up=True)


@needs_cluster
def test_the_others_go_on_and_whoever_is_cut_off_waits(tmp_path: Path) -> None:
    def step(rank: int) -> int:
        file = tmp_path / f"step-{rank}"
        return int(file.read_text() or 0) if file.exists() else 0

    def have_done(ranks: list[int], more: int) -> Callable[[], bool]:
        aims = {rank: step(rank) + more for rank in ranks}
        return lambda: all(step(rank) >= aim for rank, aim in aims.items())

    everybody = list(range(HOSTS))
    name = f"cut{os.getpid() % 100_000}"
    with (
        emulated.running(emulated.Cluster(name, (1,) * HOSTS, (0.0,) * HOSTS)) as cluster,
        (tmp_path / "said").open("w") as output,
    ):
        workers = emulated.start(
            cluster,
            [sys.executable, WORKER, str(tmp_path)],
            extra={"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            output=output,
        )
        try:
            wait_for(have_done(everybody, 20))
            with unplugged(cluster, everybody):
                time.sleep(SILENT_S)
            wait_for(have_done(everybody, 20))  # nobody was lost: nobody goes on alone
            with unplugged(cluster, [3]):
                wait_for(have_done([0, 1, 2], 50))
                alone = step(3)
                time.sleep(1)
                assert step(3) == alone
            wait_for((tmp_path / "found-3.json").exists)
            wait_for(have_done([0, 1, 2], 20))
            (tmp_path / "enough").touch()
            codes = emulated.finish(workers, 60)
        finally:
            emulated.end(workers)
    assert codes == [0] * HOSTS, (tmp_path / "said").read_text()
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in everybody]
    assert "the others go on without this worker" in found[3]["error"]
    for rank in (0, 1, 2):
        assert found[rank]["error"] == ""
    assert found[3]["steps"] <= alone + 2  # the one that waited, and the one that it has learned in
    assert 3 in found[0]["lost"] and 3 in found[2]["lost"]  # its neighbours on the ring
